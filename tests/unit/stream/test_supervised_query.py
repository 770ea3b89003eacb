"""A query that fails, cannot be prepared or must not start is retried, refused, or ends the driver."""

from dataclasses import replace
from itertools import count

import pytest

from include.declarations.event_types.topic_events import TopicEvents
from include.errors import KafkaUnavailableError
from include.stream.query_reports import Phase
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming import supervised_query
from spark_jobs.streaming.query_spec import StartRefusedError
from spark_jobs.streaming.specs.dead_letters import dead_letter_spec
from spark_jobs.streaming.supervised_query import QueryFailedError, SupervisedQuery
from tests.support.query_specs import (
    ENDPOINTS,
    NO_ADMIN,
    NO_CONSUMER,
    NO_SPARK,
    TRIGGERS,
    Attempts,
    query,
)

POLLS = supervised_query.MAX_FAILURES_IN_A_ROW + 5


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by a thousand seconds at each reading, so that every retry is due."""
    seconds = count(0, 1_000)
    monkeypatch.setattr("spark_jobs.streaming.supervised_query.time.monotonic", lambda: float(next(seconds)))


def poll_repeatedly(failing: SupervisedQuery) -> None:
    for _ in range(POLLS):
        failing.poll()


def test_query_that_readers_depend_on_ends_the_driver() -> None:
    message = "balance/v2 failed 9 times in a row, last with: the fold gives null"
    with pytest.raises(QueryFailedError, match=message):
        poll_repeatedly(query(Attempts()))


def test_any_other_query_is_retried_indefinitely() -> None:
    attempts = Attempts()
    failing = query(attempts, essential=False)
    poll_repeatedly(failing)

    assert (attempts.prepared, attempts.started) == (1, POLLS)
    assert (failing.phase, failing.last_error) == (Phase.FAILED, "the fold gives null")


def test_dead_letters_never_end_the_driver() -> None:
    attempts = Attempts()
    spec = dead_letter_spec(
        ENDPOINTS, KnownSchemas({}), TopicEvents("events", ()), (), TRIGGERS, NO_CONSUMER, NO_ADMIN
    )
    failing = SupervisedQuery(NO_SPARK, replace(spec, guard=attempts.guard), NO_CONSUMER)
    poll_repeatedly(failing)

    assert (attempts.started, failing.phase) == (POLLS, Phase.FAILED)


def test_a_query_reports_for_how_long_it_has_failed_or_been_refused() -> None:
    failing = query(Attempts(), essential=False)
    assert failing.failing_for_s == 0
    poll_repeatedly(failing)
    first = failing.failing_for_s
    poll_repeatedly(failing)
    assert failing.failing_for_s > first > POLLS

    refused = query(Attempts(prepare_error=StartRefusedError("revision 2 is missing")), essential=False)
    refused.poll()
    assert refused.failing_for_s > 0


def test_unavailable_server_does_not_count_as_a_failure_of_an_essential_query() -> None:
    attempts = Attempts(prepare_error=KafkaUnavailableError("no broker"))
    waiting = query(attempts)
    poll_repeatedly(waiting)

    assert (attempts.prepared, attempts.started) == (POLLS, 0)
    assert (waiting.phase, waiting.last_error, waiting.failures_in_a_row) == (Phase.FAILED, "no broker", 0)


def test_refused_query_is_checked_again_and_starts_once_the_reason_is_gone() -> None:
    attempts = Attempts(prepare_error=StartRefusedError("revision 2 is missing"))
    refused = query(attempts, essential=False)
    refused.poll()
    assert (refused.phase, refused.last_error) == (Phase.REFUSED, "revision 2 is missing")

    attempts.prepare_error = StartRefusedError("revision 2 was edited")
    refused.poll()
    assert (refused.phase, refused.last_error) == (Phase.REFUSED, "revision 2 was edited")

    attempts.prepare_error = None
    refused.poll()
    assert (attempts.prepared, attempts.started) == (3, 1)


def test_stopped_query_never_starts_again() -> None:
    attempts = Attempts()
    stopped = query(attempts)
    stopped.stop()
    stopped.poll()

    assert (stopped.phase, attempts.prepared) == (Phase.STOPPED, 0)
