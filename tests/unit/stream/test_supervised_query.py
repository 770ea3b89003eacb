"""What becomes of a query that fails again and again: the driver ends for a live version's alone."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.streaming import supervised_query
from spark_jobs.streaming.supervised_query import Phase, QueryEndpoints, QueryFailedError, SupervisedQuery

PLACE = QueryEndpoints("127.0.0.1:1", "events", "states", 1, "checkpoint")
TRIES = supervised_query.MAX_FAILURES_IN_A_ROW + 5


class Broken(SupervisedQuery):
    """A query that cannot be started."""

    tries = 0

    def _start(self) -> tuple[StreamingQuery, Phase]:
        self.tries += 1
        raise ValueError("the fold gives null")


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Broken:
    clock = iter(range(0, 1_000_000, 1_000))
    monkeypatch.setattr("spark_jobs.streaming.supervised_query.time.monotonic", lambda: float(next(clock)))
    nothing: Any = SimpleNamespace(schema_ids={})
    return Broken("balance/v2", nothing, PLACE, nothing)


def poll_often(query: Broken) -> None:
    for _ in range(TRIES):
        query.poll()


def test_query_that_readers_depend_on_ends_the_driver(query: Broken) -> None:
    message = "balance/v2 failed 9 times in a row, last with: the fold gives null"
    with pytest.raises(QueryFailedError, match=message):
        poll_often(query)


def test_any_other_query_is_tried_on_and_on(query: Broken) -> None:
    query.is_essential = False
    poll_often(query)

    assert query.tries == TRIES
    assert (query.phase, query.last_error) == (Phase.FAILED, "the fold gives null")
