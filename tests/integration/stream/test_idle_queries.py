"""A fold without new events commits rarely, and folds the first event at once; a kill meanwhile loses nothing and repeats no dead letter."""

from contextlib import closing
from pathlib import Path

import pytest

from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import dead_letter_topic
from include.position import Offsets
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, committed_offsets, query_name
from tests.integration.stream.conftest import PACED
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource, records_of
from tests.support.unsupervised_driver import LogFile, SharedDriver, log_path
from tests.support.waiting import wait_until

CHANGELOG = f"{PACED}.v1.changelog"
QUERY = query_name(PACED, 1)


@pytest.fixture
def rarely(paced: Settings) -> str:
    """The log line of a fold that begins to commit rarely."""
    return f"query {QUERY} commits every {paced.stream.idle_interval_s} s from now on"


def commits(settings: Settings) -> int:
    folder = Path(checkpoint_path(settings.checkpoints, PACED, 1)) / "commits"
    return max((int(path.name) for path in folder.glob("*") if path.name.isdigit()), default=-1)


def is_committed(settings: Settings) -> bool:
    with closing(log_consumer(settings.kafka.bootstrap_servers)) as consumer:
        ends = Offsets.of_ends(end_offsets(consumer, PACED, settings.topics.partitions))
    return committed_offsets(checkpoint_path(settings.checkpoints, PACED, 1), PACED).covers(ends)


def test_idle_fold_commits_rarely_and_soon_after_an_event(
    paced: Settings, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger, rarely: str
) -> None:
    driver.stop()
    log = LogFile(log_path(paced))
    driver.ensure_running()
    paced_source.append(paced_ledger.random_events(10))
    log.wait_for(rarely)
    assert is_committed(paced), "it was idle only once everything was committed"
    before = commits(paced)

    log.forget()
    paced_source.append(paced_ledger.random_events(10))
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "the events are folded")
    log.wait_for(f"query {QUERY} commits every {paced.stream.real_time_interval_s} s from now on")
    assert commits(paced) == before, "the fold had not committed meanwhile"
    wait_until(lambda: is_committed(paced), "the events are committed")
    paced_ledger.assert_exact(paced, CHANGELOG)


def test_kill_of_a_fold_that_commits_rarely_loses_and_repeats_nothing(
    paced: Settings, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger, rarely: str
) -> None:
    driver.stop()
    log = LogFile(log_path(paced))
    driver.ensure_running()
    log.wait_for(rarely)
    letters = len(records_of(paced, dead_letter_topic(PACED)))
    paced_source.append(paced_ledger.random_events(10))
    paced_source.append_raw(b"customer", b"garbage")
    paced_source.flush()
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "the events are folded")
    wait_until(
        lambda: len(records_of(paced, dead_letter_topic(PACED))) > letters, "the bad record is a dead letter"
    )
    driver.kill()

    driver.ensure_running()
    paced_source.append(paced_ledger.random_events(10))
    paced_source.append_raw(b"customer", b"garbage")
    paced_source.flush()
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "later events are folded")
    paced_ledger.assert_exact(paced, CHANGELOG)
    wait_until(
        lambda: len(records_of(paced, dead_letter_topic(PACED))) >= letters + 2,
        "the later bad record is a dead letter",
    )
    assert len(records_of(paced, dead_letter_topic(PACED))) == letters + 2
