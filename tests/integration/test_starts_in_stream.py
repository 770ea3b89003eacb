"""The stream driver folds and emits a version that starts later from its start on, without a checkpoint to say so."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import pytest

from include.kafka.log_reading import end_offsets, log_consumer
from include.position import Offsets
from include.settings import Settings
from include.versions.transitions import hand_over, register
from tests.integration.emissions.receipts import (
    CATALOG,
    DECLARATIONS,
    EMISSION,
    SOURCE,
    Deposits,
    change_versions,
    receipts,
    wait_for_more,
    written,
)
from tests.support.stream_process import EventSource, make_topics, states
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

MODEL = CATALOG.models["savings"]
EVENTS = 500


@pytest.fixture
def home(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    with sharing_servers(
        servers, keep_home, stream_spare_queries=1, **SHORT_COMMITS, read_models_dir=DECLARATIONS
    ) as settings:
        make_topics(settings, SOURCE)
        yield settings


@pytest.mark.timeout(600)
def test_a_version_that_starts_later_folds_and_emits_only_later_events(home: Settings) -> None:
    with SharedDriver(home) as driver:
        deposits = Deposits(EventSource(home, SOURCE))
        deposits.append(EVENTS)
        driver.ensure_running()
        wait_for_more(home, 0)
        starts = source_ends(home)
        change_versions(
            home,
            partial(
                register,
                run_id="reset",
                reason="a test",
                fold_revision=1,
                now=datetime.now(UTC),
                starts=starts,
            ),
            partial(hand_over, number=2),
        )
        later = Deposits(EventSource(home, SOURCE))
        later.append(EVENTS)

        own = EMISSION.version_topic(2)
        wait_until(lambda: written(home, own) >= len(later.expected), "the version emits", timeout_s=240)
        found = {str(record["id"]): record["deposits"] for record in receipts(home, own)}
        assert found == {number: receipt.deposits for number, receipt in later.expected.items()}

        counts: Counter[str] = Counter(f"customer-{number * 7919 % 1009}" for number in range(1, EVENTS + 1))

        def is_folded() -> bool:
            records = states(home, MODEL, "savings.v2.changelog", 1)
            return {key: record.event_count for key, record in records.items()} == counts

        wait_until(is_folded, "the version has the later events, and no others", timeout_s=120)


def source_ends(settings: Settings) -> Offsets:
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        return Offsets.of_ends(end_offsets(consumer, SOURCE, settings.topics.partitions))
    finally:
        consumer.close()
