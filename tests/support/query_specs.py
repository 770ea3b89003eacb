"""Query specifications for tests without Spark: the guard, which is the last step before Spark starts, fails."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from include.settings import KafkaConnection
from include.stream.slot_planning import SlotRank
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, TriggerSettings
from spark_jobs.streaming.supervised_query import SupervisedQuery

# Never used: such a query fails in its guard.
NO_SPARK: Any = None
NO_CONSUMER: Any = None
NO_ADMIN: Any = None
ENDPOINTS = QueryEndpoints(KafkaConnection("127.0.0.1:1"), "events", "states", 2, "checkpoint")
TRIGGERS = TriggerSettings(1_000, 1_000, 300)


@dataclass
class Attempts:
    """Counts the steps of a query before Spark starts it; `prepare` raises `prepare_error` if it is set."""

    prepared: int = 0
    started: int = 0
    prepare_error: Exception | None = None

    def prepare(self) -> None:
        """Count, and raise `prepare_error` if it is set."""
        self.prepared += 1
        if self.prepare_error is not None:
            raise self.prepare_error

    def guard(self) -> AbstractContextManager[None]:
        """Count, and fail."""
        self.started += 1
        raise ValueError("the fold gives null")


def spec(
    name: str = "balance/v2",
    attempts: Attempts | None = None,
    *,
    essential: bool = True,
    waits: bool = False,
    rank: SlotRank = SlotRank.OTHER,
) -> QuerySpec:
    """Return a specification that needs two task slots."""
    prepare: Callable[[], None] = (lambda: None) if attempts is None else attempts.prepare
    return QuerySpec(
        name=name,
        endpoints=ENDPOINTS,
        schemas=KnownSchemas({}),
        records=lambda source, _ids: source,
        triggers=TRIGGERS,
        is_essential=essential,
        prepare=prepare,
        guard=nullcontext if attempts is None else attempts.guard,
        waits_for_others=waits,
        slot_rank=(rank, 0),
    )


def query(attempts: Attempts, *, essential: bool = True) -> SupervisedQuery:
    """Return a query with such a specification."""
    return SupervisedQuery(NO_SPARK, spec(attempts=attempts, essential=essential), NO_CONSUMER)
