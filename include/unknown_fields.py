"""Reads records that a newer release has written, with fields that this release does not know."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def ignore_unknown_fields(record_type: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored fields that a dataclass has; during a rolling upgrade, a newer release may add others.

    Raises TypeError if `stored` is not an object.
    """
    if not isinstance(stored, Mapping):
        raise TypeError(f"Not an object: {stored!r}.")
    names = {field.name for field in fields(record_type)}
    return {name: value for name, value in stored.items() if name in names}
