"""Imports the modules of read models, some of which may be in a folder outside the checkout."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from include.errors import ReadModelError

PACKAGE = "include.read_models"
# Not resolved, so that it equals the path of a module imported by name.
READ_MODELS = Path(__file__).parent.parent / "read_models"
MODEL_MODULE = "model"

T = TypeVar("T")


def read_model_modules(folders: tuple[Path, ...] = ()) -> list[pkgutil.ModuleInfo]:
    """Return every module and package of declarations, in `include/read_models/` and in the folders of additional ones.

    Raises ReadModelError when a folder does not exist, a read model's folder is not a package, or two modules have the same name.
    """
    directories = (READ_MODELS, *folders)
    for directory in directories:
        if not directory.is_dir():
            raise ReadModelError(
                f"The folder {directory} of read models does not exist: correct FOLDLAKE_READ_MODELS_DIR."
            )
        for model in directory.glob(f"*/{MODEL_MODULE}.py"):
            if not model.with_name("__init__.py").is_file():
                raise ReadModelError(f"{model.parent} is not a package: add an empty file __init__.py.")
    found: dict[str, pkgutil.ModuleInfo] = {}
    for directory in directories:
        for info in pkgutil.iter_modules([str(directory)]):
            if info.name in found:
                raise ReadModelError(f"{directory / info.name} has the name of another module: rename it.")
            found[info.name] = info
    return list(found.values())


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


def all_modules(info: pkgutil.ModuleInfo) -> Iterator[ModuleType]:
    """Import and yield a read model's module, or every module of its package at any depth."""
    module = import_model(info, reload=False)
    if not info.ispkg:
        yield module
        return
    package = sys.modules[f"{PACKAGE}.{info.name}"]
    yield package
    for inner in sorted(
        pkgutil.walk_packages(package.__path__, f"{package.__name__}."), key=lambda inner: inner.name
    ):
        yield importlib.import_module(inner.name)


def declared_values(attribute: str, kind: type[T], folders: tuple[Path, ...] = ()) -> Iterator[T]:
    """Yield what each module in `include/read_models/` and in `folders` assigns to this name, such as `ROUTE`.

    Raises ReadModelError when it is of another type.
    """
    for info in read_model_modules(folders):
        for module in all_modules(info):
            value = getattr(module, attribute, None)
            if value is None:
                continue
            if not isinstance(value, kind):
                raise ReadModelError(f"{attribute} of {module.__name__} must be of type {kind.__name__}.")
            yield value
