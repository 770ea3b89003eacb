"""Discovers the modules of `spark_jobs/streaming/specs/` and collects their query specifications."""

import importlib
import logging
import pkgutil
from types import ModuleType

import spark_jobs.streaming.specs
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


class QuerySpecError(FoldlakeError):
    """A module of query specifications cannot be used."""


def spec_modules(package: ModuleType = spark_jobs.streaming.specs) -> list[ModuleType]:
    """Import the modules of a package in the order of their names; raises QuerySpecError for one without `query_specs`."""
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    ]
    for module in modules:
        if not callable(getattr(module, "query_specs", None)):
            message = f"{module.__name__} has no function `query_specs(context)`: add it, or move the module elsewhere."
            raise QuerySpecError(message)
    return modules


class SpecDiscovery:
    """Collects the current specifications of all modules."""

    def __init__(self, context: StreamContext, modules: list[ModuleType]) -> None:
        self._context = context
        self._specs: dict[str, list[QuerySpec]] = {module.__name__: [] for module in modules}
        self._modules = modules

    def specs(self) -> list[QuerySpec]:
        """Return the specifications of all modules.

        While a module cannot reach Kafka or the schema registry, its previous specifications remain. Raises QuerySpecError
        when two specifications have the same name.
        """
        for module in self._modules:
            try:
                self._specs[module.__name__] = list(module.query_specs(self._context))
            except (KafkaUnavailableError, RegistryUnavailableError) as error:
                LOG.warning("keeping the current queries of %s: %s", module.__name__, error)
        specs = [spec for module_specs in self._specs.values() for spec in module_specs]
        names = [spec.name for spec in specs]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            message = f"Two query specifications have the name {', '.join(duplicates)}: rename one of them."
            raise QuerySpecError(message)
        return specs
