"""Reads the declarations of each module from its list DECLARATIONS, and validates each of them by itself.

A module can also define kinds of declaration, which it lists in KINDS.

A module is left out if it cannot be imported, declares nothing, or has an invalid declaration, such as an event type with a broken schema. The
other modules are not affected.
"""

import logging
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from include.declarations.api import Command, Location, Lookup
from include.declarations.catalog import ModuleFailure
from include.declarations.event_table import EventTable
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.endpoint import Endpoint
from include.declarations.kinds.kind import FlowDeclaration, require_kind
from include.declarations.kinds.model_output import ModelOutput
from include.declarations.kinds.periodic_emission import PeriodicEmission
from include.declarations.kinds.route import Route
from include.declarations.loading.modules import (
    PACKAGE,
    folders_without_init,
    import_failure,
    import_model,
    let_modules_import_each_other,
    modules_inside,
    read_model_modules,
)
from include.declarations.read_model import ReadModel
from include.declarations.windows import WindowLookup
from include.errors import ReadModelError

LISTED = "DECLARATIONS"
LISTED_KINDS = "KINDS"
# A declaration by itself, and one that belongs to the read model of its package.
Whole = ReadModel | ModelOutput | EventTable | Command | FlowDeclaration
Part = Lookup | Endpoint | Location
Declaration = Whole | Part
KINDS: tuple[type[Declaration], ...] = (
    *(ReadModel, Lookup, Endpoint, Command, Location),
    *(Route, Emission, PeriodicEmission, EventTable, FlowDeclaration),
)
# The names to which releases before DECLARATIONS assigned one declaration, or a tuple.
ONE: Mapping[str, type[Declaration]] = {
    "READ_MODEL": ReadModel,
    "ROUTE": Route,
    "EMISSION": Emission,
    "PERIODIC_EMISSION": PeriodicEmission,
    "EVENT_TABLE": EventTable,
    "LOCATION": Location,
}
SEVERAL: Mapping[str, type[Declaration]] = {
    "COMMANDS": Command,
    "LOOKUPS": Lookup,
    "WINDOW_LOOKUPS": WindowLookup,
}

T = TypeVar("T")
log = logging.getLogger(__name__)
_warned: set[str] = set()


@dataclass(frozen=True)
class DeclaredPackage:
    """The declarations of a package or of a single module, and the kinds that it defines, each once."""

    declarations: tuple[Declaration, ...]
    kinds: tuple[type[FlowDeclaration], ...] = ()

    def of(self, kind: type[T]) -> list[T]:
        """Return the declarations of a kind."""
        return [one for one in self.declarations if isinstance(one, kind)]


@dataclass(frozen=True)
class Declared:
    """The declarations of all modules, and the modules that are left out."""

    packages: tuple[DeclaredPackage, ...]
    failures: tuple[ModuleFailure, ...]

    def of(self, kind: type[T]) -> list[T]:
        """Return the declarations of a kind."""
        return [one for package in self.packages for one in package.of(kind)]

    @property
    def kinds(self) -> dict[str, type[FlowDeclaration]]:
        """The kinds that modules define, by their word; raises ReadModelError when two have one word."""
        found: dict[str, type[FlowDeclaration]] = {}
        for kind in chain.from_iterable(package.kinds for package in self.packages):
            if found.setdefault(kind.kind, kind) is not kind:
                raise ReadModelError(f"Two kinds of declaration are named {kind.kind!r}: rename one.")
        return found


def load_declared(folders: tuple[Path, ...] = (), *, reload: bool = False) -> Declared:
    """Import every module and package of declarations, in `include/read_models/` and in the folders of additional ones.

    With `reload`, they are imported again from disk. Raises ReadModelError as `read_model_modules`.
    """
    packages: list[DeclaredPackage] = []
    failures = [
        ModuleFailure(folder.name, str(folder), 0, "it is not a package: add an empty file __init__.py")
        for folder in folders_without_init(folders)
    ]
    found = read_model_modules(folders)
    let_modules_import_each_other(folders, found)
    for info in found:
        try:
            main = import_model(info, reload=reload)
            modules, failed = modules_inside(info, main)
            failures += failed
            package, invalid = _package(info, main, modules, folders, is_complete=not failed)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a module can raise anything
            failures.append(import_failure(info, info.name, error))
            continue
        failures += invalid
        if package is not None:
            packages.append(package)
    return Declared(tuple(packages), tuple(failures))


def _package(
    info: pkgutil.ModuleInfo,
    main: ModuleType,
    modules: Sequence[ModuleType],
    folders: tuple[Path, ...],
    *,
    is_complete: bool,
) -> tuple[DeclaredPackage | None, list[ModuleFailure]]:
    """Return what a package declares, and its modules that are left out; None without its main module or its read model.

    is_complete: whether all of its modules are imported.
    """
    declared: dict[ModuleType, tuple[Declaration, ...]] = {}
    kinds: dict[ModuleType, list[type[FlowDeclaration]]] = {}
    failures: dict[ModuleType, ModuleFailure] = {}

    def leave_out(module: ModuleType, error: Exception) -> None:
        name = info.name if module is main else module.__name__.removeprefix(f"{PACKAGE}.")
        failure = import_failure(info, name, error)
        failures[module] = replace(failure, file=module.__file__ or failure.file)

    for module in modules:
        try:
            kinds[module] = [require_kind(kind) for kind in getattr(module, LISTED_KINDS, ())]
            declared[module] = _declared_in(module, is_main=module is main)
        except Exception as error:  # noqa: BLE001 - what a module declares can raise anything
            leave_out(module, error)
    if is_complete and not failures and not any((*declared.values(), *kinds.values())):
        raise ReadModelError(
            f"Module {info.name} declares nothing: give it a list `{LISTED} = [ReadModel(…)]`."
        )
    model = _read_model(info.name, chain(*declared.values()))
    if model is None and is_complete and not failures:
        _require_no_part(info.name, chain(*declared.values()))
    for module, declarations in declared.items():
        try:
            _require_valid(declarations, model, folders)
        except Exception as error:  # noqa: BLE001 - as above
            leave_out(module, error)
    if main in failures or any(model in declared.get(module, ()) for module in failures):
        return None, list(failures.values())
    valid = chain(*(found for module, found in declared.items() if module not in failures))
    defined = dict.fromkeys(chain(*(found for module, found in kinds.items() if module not in failures)))
    # A module may import the declaration of another one.
    package = DeclaredPackage(tuple({id(one): one for one in valid}.values()), tuple(defined))
    return package, list(failures.values())


def _declared_in(module: ModuleType, *, is_main: bool) -> tuple[Declaration, ...]:
    """Return what a module declares; raises ReadModelError for what is no declaration."""
    values = getattr(module, LISTED, None)
    if values is None:
        return tuple(_assigned(module, is_main=is_main))
    if not isinstance(values, list | tuple):
        raise ReadModelError(f"{LISTED} of {module.__name__} must be a list of declarations.")
    for value in values:
        if not isinstance(value, KINDS):
            raise ReadModelError(
                f"{LISTED} of {module.__name__} has {value!r:.80}, which is no declaration: use {', '.join(kind.__name__ for kind in KINDS)}."
            )
    return tuple(values)


def _assigned(module: ModuleType, *, is_main: bool) -> Iterator[Declaration]:
    """Yield what a module without DECLARATIONS assigns to the names of earlier releases; only a main module has a read model."""
    found = [name for name in (*ONE, *SEVERAL) if getattr(module, name, None) is not None]
    if not is_main and "READ_MODEL" in found:
        found.remove("READ_MODEL")
    for name in found:
        value = getattr(module, name)
        if name in ONE and not isinstance(value, ONE[name]):
            raise ReadModelError(f"{name} of {module.__name__} must be of type {ONE[name].__name__}.")
        if name in SEVERAL and not (
            isinstance(value, tuple) and all(isinstance(one, SEVERAL[name]) for one in value)
        ):
            raise ReadModelError(f"{name} of {module.__name__} must be a tuple of {SEVERAL[name].__name__}.")
        yield from (value,) if name in ONE else value
    if found and module.__name__ not in _warned:
        _warned.add(module.__name__)
        log.warning(
            "%s assigns %s: list the declarations in %s = […] instead; the next release does not read these names",
            *(module.__file__, " and ".join(found), LISTED),
        )


def _read_model(name: str, declarations: Iterator[Declaration]) -> ReadModel | None:
    """Return the read model of a package; raises ReadModelError if it has several."""
    models = list({id(one): one for one in declarations if isinstance(one, ReadModel)}.values())
    if len(models) > 1:
        raise ReadModelError(
            f"Module {name} declares the read models {' and '.join(model.name for model in models)}: give each a module or a package of "
            "its own, to which its lookups and commands belong."
        )
    return models[0] if models else None


def _require_no_part(name: str, declarations: Iterator[Declaration]) -> None:
    parts = [one for one in declarations if isinstance(one, Command | Part)]
    if parts:
        raise ReadModelError(
            f"Module {name} declares a {type(parts[0]).__name__}, but no read model: move it to the module or package of its read model."
        )


def _require_valid(
    declarations: Sequence[Declaration], model: ReadModel | None, folders: tuple[Path, ...]
) -> None:
    """Raise ReadModelError or SchemaError if a declaration cannot work, or does not match the read model of its package."""
    for one in declarations:
        if not isinstance(one, Part):
            one.require_valid(folders)
            if isinstance(one, ModelOutput) and model is not None and one.read_model == model.name:
                one.loaded(folders).validate_against(replace(model, schema_folders=folders))
        elif model is not None:
            one.validate_against(model)
