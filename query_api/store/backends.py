"""Finds the backends of a node's stores. The name of a backend is that of its folder, `query_api/store/<name>`, which defines `BACKEND`.

A backend with the name of a placement is shared by all nodes: the placement of a read model names it. The other ones are local.
"""

import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module

from include.errors import SettingsError
from include.settings import Placement, Settings
from query_api import store
from query_api.store.base import StoreBackend
from query_api.store.directory import StoreDirectory

BackendFactory = Callable[[Settings], StoreBackend]


def backend_names() -> list[str]:
    """Return the names of all backends."""
    return sorted(module.name for module in pkgutil.iter_modules(store.__path__) if module.ispkg)


def load_backend(settings: Settings) -> StoreBackend:
    """Return the backend of local stores, which FOLDLAKE_NODE_STORE names; raises SettingsError."""
    name = settings.node.store
    local = [one for one in backend_names() if one not in set(Placement)]
    if name == "memory":
        raise SettingsError(
            "FOLDLAKE_NODE_STORE=memory no longer exists. Remove it, and set FOLDLAKE_NODE_STORE_DIR to a folder in /dev/shm."
        )
    if name not in local:
        raise SettingsError(f"FOLDLAKE_NODE_STORE is {name!r}. Set it to one of: {', '.join(local)}.")
    return _load(name, settings)


def load_shared_backends(settings: Settings, placements: Mapping[str, Placement]) -> dict[str, StoreBackend]:
    """Return the backend of each read model that is not in local stores, by name; raises SettingsError for one that cannot be used."""
    names = set(backend_names())
    of_placement = {p: _load(p, settings) for p in sorted(set(placements.values()) & names)}
    return {model: of_placement[p] for model, p in placements.items() if p in of_placement}


def store_directory(settings: Settings, placements: Mapping[str, Placement]) -> StoreDirectory:
    """Return the stores of the node that the settings describe; raises SettingsError."""
    shared = load_shared_backends(settings, placements)
    return StoreDirectory(settings.store_dir, load_backend(settings), shared)


def _load(name: str, settings: Settings) -> StoreBackend:
    factory: BackendFactory = import_module(f"query_api.store.{name}").BACKEND
    return factory(settings)
