"""Reads records that a newer release may have written, with fields that this release does not know. Standard library only."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def ignore_unknown_fields(record_type: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored fields that a dataclass has; during a rolling upgrade, a newer release may add others.

    Raises TypeError if `stored` is not an object.
    """
    if not isinstance(stored, Mapping):
        raise TypeError(f"Not an object: {stored!r}.")
    names = {field.name for field in fields(record_type)}
    return {name: value for name, value in stored.items() if name in names}


def read_record(record_type: type[T], path: Path) -> T | None:
    """Return the record in a file with JSON; None if there is no file, or it is not such a record."""
    try:
        return record_type(**ignore_unknown_fields(record_type, json.loads(path.read_text())))
    except (FileNotFoundError, ValueError, TypeError):
        return None
