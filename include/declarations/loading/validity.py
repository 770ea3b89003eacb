"""Whether what a module declares can work by itself, whatever other modules declare."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from include.errors import ReadModelError

if TYPE_CHECKING:
    from include.declarations.read_model import ReadModel

# What a module may assign, and the name of its type. Types are compared by name: a module that is imported again has another one.
KINDS = {
    "READ_MODEL": "ReadModel",
    "ROUTE": "Route",
    "EMISSION": "Emission",
    "PERIODIC_EMISSION": "PeriodicEmission",
    "EVENT_TABLE": "EventTable",
}
# What a module of a read model may assign as well: one value, and tuples.
LOCATION = {"LOCATION": "Location"}
COMMANDS = {"COMMANDS": "Command"}
LOOKUPS = {"LOOKUPS": "NamedLookup", "WINDOW_LOOKUPS": "WindowLookup"}


class Declaration(Protocol):
    """What a module assigns to one of KINDS, or one of its commands."""

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise ReadModelError or SchemaError if it cannot work; `folders`: those of additional declarations."""


class ModelPart(Protocol):
    """A lookup or a location, which is of the package's read model."""

    def require_of(self, model: "ReadModel") -> None:
        """Raise ReadModelError if it does not match the read model."""


def require_types(module: ModuleType) -> None:
    """Raise ReadModelError if what a module assigns to one of these names has another type."""
    for name, kind in (KINDS | LOCATION).items():
        if (value := getattr(module, name, None)) is not None and not _is(value, kind):
            raise ReadModelError(f"{name} of {module.__name__} must be of type {kind}.")
    for name, kind in (COMMANDS | LOOKUPS).items():
        values = getattr(module, name, ())
        if not isinstance(values, tuple) or not all(_is(value, kind) for value in values):
            raise ReadModelError(f"{name} of {module.__name__} must be a tuple of {kind}.")


def require_valid(module: ModuleType, model: "ReadModel | None", folders: tuple[Path, ...]) -> None:
    """Raise ReadModelError or SchemaError if what a module declares cannot work, or does not match the read model of its package."""
    declared: list[Declaration] = [*_values(module, KINDS), *chain(*_values(module, COMMANDS))]
    for one in declared:
        one.require_valid(folders)
    if model is None:
        return
    parts: list[ModelPart] = [*_values(module, LOCATION), *chain(*_values(module, LOOKUPS))]
    for part in parts:
        part.require_of(model)


def _values(module: ModuleType, names: Mapping[str, str]) -> list[Any]:
    """Return what a module assigns to these names."""
    return [value for name in names if (value := getattr(module, name, None)) is not None]


def _is(value: object, kind: str) -> bool:
    return any(base.__name__ == kind for base in type(value).__mro__)
