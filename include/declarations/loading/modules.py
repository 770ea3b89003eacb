"""Imports the modules of read models, some of which may be in a folder outside the checkout.

A module that cannot be imported, declares nothing, or declares what cannot work by itself, such as events whose schema is broken, is left
out with what it declares: the others are not affected.
"""

import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from include.declarations.loading.validity import KINDS, require_types, require_valid
from include.errors import FoldlakeError, ReadModelError

PACKAGE = "include.read_models"
# Not resolved, so that it equals the path of a module imported by name.
READ_MODELS = Path(__file__).parent.parent.parent / "read_models"
MODEL_MODULE = "model"

T = TypeVar("T")


@dataclass(frozen=True)
class ModuleFailure:
    """A module that is left out. line: of the file; 0 if the error is not at one of its lines."""

    module: str
    file: str
    line: int
    error: str

    def __str__(self) -> str:
        """Return the module, where the error is, and the error."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.module} is left out: {place}: {self.error}"


@dataclass(frozen=True)
class DeclarationModule:
    """A module or package that is imported. main: what may assign READ_MODEL; modules: every module of a package, or this one."""

    main: ModuleType
    modules: tuple[ModuleType, ...]


@dataclass(frozen=True)
class LoadedModules:
    """The modules of declarations that are imported, and those that are left out."""

    modules: tuple[DeclarationModule, ...]
    failures: tuple[ModuleFailure, ...]


def load_modules(folders: tuple[Path, ...] = (), *, reload: bool = False) -> LoadedModules:
    """Import every module and package of declarations, in `include/read_models/` and in the folders of additional ones.

    With `reload`, they are imported again from disk. Raises ReadModelError as `read_model_modules`.
    """
    loaded: list[DeclarationModule] = []
    failures = [
        ModuleFailure(folder.name, str(folder), 0, "it is not a package: add an empty file __init__.py")
        for folder in _folders_without_init(folders)
    ]
    for info in read_model_modules(folders):
        try:
            main = import_model(info, reload=reload)
            modules, failed = _modules_inside(info, main)
            failures += failed
            _require_any(info, modules, is_complete=not failed)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a module can raise anything
            failures.append(_failure(info, info.name, error))
            continue
        invalid = _invalid_modules(info, main, modules, folders)
        failures += invalid.values()
        if main not in invalid:
            valid = tuple(module for module in modules if module not in invalid)
            loaded.append(DeclarationModule(main, valid))
    return LoadedModules(tuple(loaded), tuple(failures))


def read_model_modules(folders: tuple[Path, ...] = ()) -> list[pkgutil.ModuleInfo]:
    """Return every module and package of declarations, in `include/read_models/` and in the folders of additional ones.

    Raises ReadModelError when a folder does not exist, or two modules have the same name.
    """
    found: dict[str, pkgutil.ModuleInfo] = {}
    for directory in _directories(folders):
        for info in pkgutil.iter_modules([str(directory)]):
            # Python would import the package, and ignore the module.
            is_double = info.ispkg and (directory / f"{info.name}.py").is_file()
            if info.name in found or is_double:
                raise ReadModelError(f"{directory / info.name} has the name of another module: rename it.")
            found[info.name] = info
    return list(found.values())


def _directories(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    directories = (READ_MODELS, *folders)
    for directory in directories:
        if not directory.is_dir():
            raise ReadModelError(
                f"The folder {directory} of read models does not exist: correct FOLDLAKE_READ_MODELS_DIR."
            )
    return directories


def _folders_without_init(folders: tuple[Path, ...]) -> list[Path]:
    return [
        model.parent
        for directory in _directories(folders)
        for model in sorted(directory.glob(f"*/{MODEL_MODULE}.py"))
        if not model.with_name("__init__.py").is_file()
    ]


def import_model(info: pkgutil.ModuleInfo, *, reload: bool) -> ModuleType:
    """Import the module that assigns a read model's `READ_MODEL`: the module itself, or `model.py` of its package.

    With `reload`, the modules are imported again from disk. If that fails, the previous import stays in effect.
    """
    name = f"{PACKAGE}.{info.name}"
    spec = info.module_finder.find_spec(name, None)
    if spec is None or spec.loader is None:
        raise ReadModelError(f"Read-model module {info.name} cannot be imported: is it a Python file?")
    known = sys.modules.get(name)
    if (
        known is not None
        and not reload
        and known.__spec__ is not None
        and known.__spec__.origin == spec.origin
    ):
        return _model_module(known)
    before = {imported: sys.modules.pop(imported) for imported in _imported(name)}
    importlib.invalidate_caches()
    try:
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return _model_module(module)
    except BaseException:
        for imported in _imported(name):
            del sys.modules[imported]
        sys.modules.update(before)
        raise


def _imported(name: str) -> list[str]:
    """Return the names of a module and of the modules inside it, if imported."""
    return [imported for imported in sys.modules if imported == name or imported.startswith(f"{name}.")]


def _model_module(module: ModuleType) -> ModuleType:
    inner = f"{module.__name__}.{MODEL_MODULE}"
    has_inner = hasattr(module, "__path__") and importlib.util.find_spec(inner) is not None
    return importlib.import_module(inner) if has_inner else module


def _modules_inside(
    info: pkgutil.ModuleInfo, main: ModuleType
) -> tuple[tuple[ModuleType, ...], list[ModuleFailure]]:
    """Import every module of a package, at any depth; return those that are imported, and the failures."""
    if not info.ispkg:
        return (main,), []
    package = sys.modules[f"{PACKAGE}.{info.name}"]
    found, failures = [package], []
    # A package that cannot be imported is a failure below.
    inside = pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda _name: None)
    for inner in sorted(inside, key=lambda inner: inner.name):
        try:
            found.append(importlib.import_module(inner.name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            failures.append(_failure(info, inner.name.removeprefix(f"{PACKAGE}."), error))
    return tuple(found), failures


def _require_any(info: pkgutil.ModuleInfo, modules: Sequence[ModuleType], *, is_complete: bool) -> None:
    """Raise ReadModelError if a package of which all modules are imported declares nothing."""
    if is_complete and all(getattr(module, name, None) is None for module in modules for name in KINDS):
        raise ReadModelError(
            f"Module {info.name} of the read models has no {', '.join(KINDS)}: assign it a ReadModel."
        )


def _invalid_modules(
    info: pkgutil.ModuleInfo, main: ModuleType, modules: Sequence[ModuleType], folders: tuple[Path, ...]
) -> dict[ModuleType, ModuleFailure]:
    """Return the modules of a package whose declarations cannot work by themselves, with the reason."""
    invalid: dict[ModuleType, ModuleFailure] = {}
    for module in modules:
        try:
            require_types(module)
            require_valid(module, getattr(main, "READ_MODEL", None), folders)
        except Exception as error:  # noqa: BLE001 - what a declaration contains can raise anything
            name = info.name if module is main else module.__name__.removeprefix(f"{PACKAGE}.")
            failure = _failure(info, name, error)
            invalid[module] = replace(failure, file=module.__file__ or failure.file)
    return invalid


def _failure(info: pkgutil.ModuleInfo, module: str, error: BaseException) -> ModuleFailure:
    """Return the failure of a module, at the innermost line of its own file or package."""
    own = Path(str(getattr(info.module_finder, "path", ""))) / info.name
    file, line = str(own / "__init__.py" if info.ispkg else own.with_suffix(".py")), 0
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).with_suffix("") == own or own in Path(frame.filename).parents:
            file, line = frame.filename, frame.lineno or 0
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno or 0
    text = str(error) if isinstance(error, FoldlakeError) else f"{type(error).__name__}: {error}"
    return ModuleFailure(module, file, line, text)


def declared_values(attribute: str, kind: type[T], folders: tuple[Path, ...] = ()) -> Iterator[T]:
    """Yield what each module in `include/read_models/` and in `folders` assigns to this name, such as `ROUTE`, of this type."""
    for loaded in load_modules(folders).modules:
        for module in loaded.modules:
            value = getattr(module, attribute, None)
            if isinstance(value, kind):
                yield value


def reads_left_out(read_model: str, models: Container[str], folders: tuple[Path, ...]) -> bool:
    """Return whether the read model that a declaration reads may be one of a module that is left out: so is the declaration, then.

    models: the names of the read models that are loaded.
    """
    return read_model not in models and bool(load_modules(folders).failures)
