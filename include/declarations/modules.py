"""Importing the modules of read models, which may lie in a folder outside the checkout."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from include.errors import ReadModelError

PACKAGE = "include.read_models"
READ_MODELS = Path(__file__).resolve().parent.parent / "read_models"
MODEL_MODULE = "model"


def read_model_modules(extra_directory: Path | None = None) -> list[pkgutil.ModuleInfo]:
    """Return every module and package of read models, in `include/read_models/` and in the folder of further ones.

    Raises ReadModelError when that folder does not exist, or a read model's folder is no package.
    """
    directories = [READ_MODELS, *([extra_directory] if extra_directory else [])]
    for directory in directories:
        if not directory.is_dir():
            raise ReadModelError(
                f"There is no folder {directory} of read models: correct FOLDLAKE_READ_MODELS_DIR."
            )
        for model in directory.glob(f"*/{MODEL_MODULE}.py"):
            if not model.with_name("__init__.py").is_file():
                raise ReadModelError(f"{model.parent} is no package: add an empty file __init__.py.")
    return list(pkgutil.iter_modules([str(directory) for directory in directories]))


def import_model(info: pkgutil.ModuleInfo, *, reload: bool) -> ModuleType:
    """Import what assigns a read model's `READ_MODEL`: the module itself, or `model.py` of its package.

    With `reload`, they are imported again as they are on disk now. If that fails, those imported before stay.
    """
    name = f"{PACKAGE}.{info.name}"
    spec = info.module_finder.find_spec(name, None)
    if spec is None or spec.loader is None:
        raise ReadModelError(f"Read-model module {info.name} cannot be imported: is it a Python file?")
    known = sys.modules.get(name)
    is_known = known is not None and known.__spec__ is not None and known.__spec__.origin == spec.origin
    if known is None or reload or not is_known:
        before = {n: module for n, module in sys.modules.items() if n == name or n.startswith(f"{name}.")}
        for imported in before:
            del sys.modules[imported]
        try:
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            return _model_module(module, info)
        except BaseException:
            for imported in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
                del sys.modules[imported]
            sys.modules.update(before)
            raise
    return _model_module(known, info)


def _model_module(module: ModuleType, info: pkgutil.ModuleInfo) -> ModuleType:
    return importlib.import_module(f"{module.__name__}.{MODEL_MODULE}") if info.ispkg else module


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
