"""The queries of the driver: their specifications, collected from the modules of `specs/`, and what keeps them in step with these."""

import importlib
import logging
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

from confluent_kafka import Consumer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_jobs.streaming.specs
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.stream.query_reports import CONTINUOUS, Phase
from include.stream.slot_planning import queries_with_slots
from spark_jobs.runtime.error_summary import error_summary
from spark_jobs.streaming.interval_changes import IntervalChanges
from spark_jobs.streaming.lag import SourceEnds
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.query_start import analyse
from spark_jobs.streaming.stream_context import StreamContext
from spark_jobs.streaming.supervised_query import QueryFailedError, SupervisedQuery
from spark_jobs.streaming.workers.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)
ENDED = {Phase.REFUSED, Phase.STOPPED}
# A query that has just started plans, compiles and reads its state for seconds, and then folds its backlog, for which it needs every core.
SETTLING_S = 4.0
# Between two polls; queries that wait for events are started sooner.
POLL_INTERVAL_S = 0.5
NO_SLOTS = (
    "no task slots are free: retire a previous version (`./foldlake versions` lists them), or raise "
    "FOLDLAKE_STREAM_SPARE_QUERIES and run `./foldlake up`"
)


class QuerySet:
    """Keeps the running queries in step with the specifications.

    specs: returns the specifications that should run now. task_slots: number of slots that the driver has.
    is_warm: whether the JVM has compiled what a fold needs. Until then, one fold runs even if no source has new events.
    """

    def __init__(
        self,
        spark: SparkSession,
        consumer: Consumer,
        specs: Callable[[], Iterable[QuerySpec]],
        task_slots: int,
    ) -> None:
        self._spark = spark
        self._consumer = consumer
        self._ends = SourceEnds(consumer)
        self._changes = IntervalChanges(consumer, self._ends)
        self._specs = specs
        self._task_slots = task_slots
        self._with_slots: set[str] = set()
        self._queries: dict[str, SupervisedQuery] = {}
        self._poll_at_s = 0.0
        self.is_warm = False

    def __iter__(self) -> Iterator[SupervisedQuery]:
        """Iterate over the queries."""
        return iter(self._queries.values())

    def reconcile(self) -> None:
        """Add queries for new specifications, stop queries without one, and assign the task slots.

        A query keeps its original specification; only `is_essential` may change.
        """
        wanted = {spec.name: spec for spec in self._specs()}
        running = {name for name, query in self._queries.items() if query.phase is not Phase.REFUSED}
        for name in self._queries.keys() - wanted.keys():
            LOG.info("query %s no longer has a specification: stopping it", name)
            self._queries[name].stop()
        self._queries = {
            name: self._queries.get(name) or SupervisedQuery(self._spark, spec, self._consumer, self._ends)
            for name, spec in wanted.items()
        }
        for name, spec in wanted.items():
            self._queries[name].is_essential = spec.is_essential
        self._assign_slots(wanted, running)

    def prepare(self) -> None:
        """Prepare the queries, without starting any."""
        self.reconcile()
        for query in self:
            query.prepare()

    def require_startable(self) -> None:
        """Raise QueryFailedError, which names every essential query that is not prepared or that Spark does not accept."""
        problems = {query.name: self._problem(query) for query in self if query.is_essential}
        if found := [f"query {name}: {problem}" for name, problem in problems.items() if problem]:
            raise QueryFailedError("; ".join(found))

    def _problem(self, query: SupervisedQuery) -> str:
        if not query.prepare():
            return query.last_error
        try:
            analyse(self._spark, query.spec, query.spec.schemas.schema_ids)
        except PySparkException as error:
            return error_summary(error)
        return ""

    def poll(self) -> None:
        """Poll the queries that have task slots; raises QueryFailedError when an essential one has failed too often.

        Call it several times a second: of queries that run, it asks Spark every POLL_INTERVAL_S.
        """
        if not self._changes.wake(self) and time.monotonic() < self._poll_at_s:
            return
        self._poll_at_s = time.monotonic() + POLL_INTERVAL_S
        self._close_rejections()
        self._poll(self.due())
        self._changes.poll(self._queries.values())

    def poll_own(self, is_own: Callable[[SupervisedQuery], bool]) -> None:
        """Poll these queries alone, while another driver runs the others."""
        # Rejections stay as they are: to close one, all queries of its topic must have stopped.
        own = list(filter(is_own, self.due()))
        self._changes.wake(own)
        self._poll(own)

    def _poll(self, queries: list[SupervisedQuery]) -> None:
        for query in queries:
            query.poll()
        folds = [query for query in queries if query.spec.idle_events == 0]
        if not self.is_warm and folds:
            self.is_warm = any(query.phase is not Phase.WAITING for query in folds)
            if not self.is_warm:
                folds[0].wake()

    def due(self) -> list[SupervisedQuery]:
        """Return the queries to poll. Queries that wait for others are due once each of those has folded its backlog, SETTLING_S ago."""
        queries = self._essential_first(query for query in self if query.name in self._with_slots)
        first = [query for query in queries if not query.spec.waits_for_others]
        waiting = [query for query in queries if query.spec.waits_for_others]
        have_started = any(query.phase is not Phase.STARTING for query in waiting)
        return first + (waiting if have_started or all(map(_is_caught_up, first)) else [])

    def stop(self) -> None:
        """Stop all queries at once: each waits for tasks that end."""
        with ThreadPoolExecutor(max(1, len(self._queries)), "stop") as threads:
            list(threads.map(SupervisedQuery.stop, self._essential_first(self)))

    @staticmethod
    def _essential_first(queries: Iterable[SupervisedQuery]) -> list[SupervisedQuery]:
        return sorted(queries, key=lambda query: (not query.is_essential, not query.spec.feeds_others))

    def _close_rejections(self) -> None:
        """Let the queries decode the records of schema ids that have been registered since their rejection."""
        for schemas in {id(query.spec.schemas): query.spec.schemas for query in self}.values():
            try:
                found = schemas.registered_since()
                if not found:
                    continue
                LOG.info(
                    "schema ids %s are in the registry now: restarting the queries of their topic",
                    sorted(found),
                )
                for query in self:
                    if query.spec.schemas is schemas:
                        query.pause()
                schemas.close_rejections(found)
            except (KafkaUnavailableError, RegistryUnavailableError) as error:
                LOG.warning("looking up rejected schema ids failed, retrying later: %s", error)

    def _assign_slots(self, wanted: dict[str, QuerySpec], running: set[str]) -> None:
        claims = {name: spec.slot_claim for name, spec in wanted.items()}
        self._with_slots = queries_with_slots(claims, running, self._task_slots)
        for name, query in self._queries.items():
            if name not in self._with_slots:
                query.refuse(NO_SLOTS, retry_after_s=0)


def _is_caught_up(query: SupervisedQuery) -> bool:
    if query.phase is Phase.WAITING:
        return True
    if query.phase in CONTINUOUS:
        return min(query.running_for_s, query.lag.current_for_s()) >= SETTLING_S
    # Do not wait for a failing query that is not essential: it may never recover.
    return query.phase in ENDED or (query.phase is Phase.FAILED and not query.is_essential)


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

    def workers(self) -> list[DriverWorker]:
        """Return the threads of all modules that have some; none is running yet."""
        found = [getattr(module, "driver_workers", None) for module in self._modules]
        return [worker for workers in found if workers is not None for worker in workers(self._context)]

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
