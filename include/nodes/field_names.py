"""The names of fields in JSON documents for programs: camelCase, or snake_case as in earlier releases, which is deprecated.

What is stored, in Kafka, in tables and in files, has snake_case. Fields of events and states have the names of their declarations.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

# Its value is a FieldNames. Nodes and jobs send it with each request to a node; one of an earlier release ignores it.
FIELD_NAMES_HEADER = "Foldlake-Field-Names"
# The query parameter for the same.
FIELD_NAMES_PARAMETER = "fieldNames"
# Fields with an object whose names are data: of a declaration, or reasons of dead letters.
DATA = frozenset({"event", "state", "by_reason", "byReason"})
AFTER_UNDERSCORE = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")
UPPER_CASE = re.compile(r"(?<=[a-z0-9])([A-Z])")


class FieldNames(StrEnum):
    """A style of names."""

    CAMEL = "camelCase"
    SNAKE = "snake_case"


@lru_cache(maxsize=4096)
def camel(name: str) -> str:
    """Return a name in camelCase; one that is in camelCase as it is."""
    return AFTER_UNDERSCORE.sub(lambda found: found[1].upper(), name)


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return a name in snake_case; one that is in snake_case as it is."""
    return UPPER_CASE.sub(lambda found: f"_{found[1].lower()}", name)


STYLES: Mapping[FieldNames, Callable[[str], str]] = {FieldNames.CAMEL: camel, FieldNames.SNAKE: snake}


def renamed(value: Any, style: FieldNames) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a value for JSON with its fields in a style, whatever their style was; names that are data stay."""
    if isinstance(value, dict):
        name_of = STYLES[style]
        return {
            name_of(name) if isinstance(name, str) else name: one
            if name in DATA and isinstance(one, dict)
            else renamed(one, style)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [renamed(one, style) for one in value]
    return value
