"""Finds and imports the modules of declarations, in the checkout and in additional folders.

A module that cannot be imported is a failure; the others are not affected.
"""

import importlib
import importlib.util
import pkgutil
import sys
import traceback
from pathlib import Path
from types import ModuleType

from include.declarations.catalog import ModuleFailure
from include.declarations.event_types.event_schemas import READ_MODELS
from include.errors import FoldlakeError, ReadModelError

PACKAGE = "include.read_models"
MODEL_MODULE = "model"


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


def let_modules_import_each_other(folders: tuple[Path, ...], modules: list[pkgutil.ModuleInfo]) -> None:
    """Make every module importable as `include.read_models.<name>`, from whichever module is imported first."""
    package = importlib.import_module(PACKAGE)
    package.__path__ = [str(folder) for folder in _directories(folders)]
    for info in modules:
        name = f"{PACKAGE}.{info.name}"
        known, spec = sys.modules.get(name), info.module_finder.find_spec(name, None)
        # A module of this name in another folder, which this process has read before.
        if known is not None and spec is not None and getattr(known.__spec__, "origin", None) != spec.origin:
            for imported in _imported(name):
                del sys.modules[imported]


def folders_without_init(folders: tuple[Path, ...]) -> list[Path]:
    """Return the folders that have a module `model`, and are no packages."""
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


def modules_inside(
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
            failures.append(import_failure(info, inner.name.removeprefix(f"{PACKAGE}."), error))
    return tuple(found), failures


def import_failure(info: pkgutil.ModuleInfo, module: str, error: BaseException) -> ModuleFailure:
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
