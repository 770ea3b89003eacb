"""Finds a store's backend by its name: the folder `query_api/store/<name>`, which defines `BACKEND`."""

import pkgutil
from collections.abc import Callable
from importlib import import_module

from include.errors import SettingsError
from include.settings import NodeSettings
from query_api import store
from query_api.store.base import StoreBackend

BackendFactory = Callable[[NodeSettings], StoreBackend]


def backend_names() -> list[str]:
    """Return the names of all backends."""
    return sorted(module.name for module in pkgutil.iter_modules(store.__path__) if module.ispkg)


def load_backend(settings: NodeSettings) -> StoreBackend:
    """Return the backend that FOLDLAKE_NODE_STORE names; raises SettingsError."""
    if settings.store not in backend_names():
        raise SettingsError(
            f"FOLDLAKE_NODE_STORE is {settings.store!r}. Set it to one of: {', '.join(backend_names())}."
        )
    factory: BackendFactory = import_module(f"query_api.store.{settings.store}").BACKEND
    return factory(settings)
