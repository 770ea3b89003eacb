"""Loads each module of declarations once, and links the declarations into the catalog."""

from pathlib import Path

from include.declarations.catalog import Catalog
from include.declarations.loading.declared import load_declared
from include.declarations.loading.link import link
from include.declarations.read_model import ReadModel
from include.errors import UnknownReadModelError


def load_catalog(folders: tuple[Path, ...] = (), *, reload: bool = False) -> Catalog:
    """Return the catalog of the declarations in `include/read_models/` and in additional folders.

    folders: the additional ones (`Settings.declaration_folders`). With `reload`, modules that this process has imported are imported again from
    disk; objects created from the previous import do not change. Modules that are not valid by themselves are left out (`Catalog.failures`).

    Raises ReadModelError when two declarations exclude each other.
    """
    return link(load_declared(folders, reload=reload), folders)


def read_model(name: str, folders: tuple[Path, ...] = (), *, reload: bool = False) -> ReadModel:
    """Return one read model, imported again with `reload`; raises UnknownReadModelError as `model_of` does."""
    return model_of(load_catalog(folders, reload=reload), name)


def model_of(catalog: Catalog, name: str) -> ReadModel:
    """Return the read model of this name.

    Raises UnknownReadModelError when none has this name; it names the modules that are left out.
    """
    if name not in catalog.models:
        message = f"There is no read model {name!r}. Known read models: {', '.join(sorted(catalog.models))}."
        raise UnknownReadModelError(" ".join((message, *(f"{failure}." for failure in catalog.failures))))
    return catalog.models[name]
