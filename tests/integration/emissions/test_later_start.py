"""The stream driver folds and emits a version that starts later from its start on, without a checkpoint to say so."""

from collections import Counter

from include.kafka.log_reading import end_offsets, log_consumer
from include.position import Offsets
from include.rebuild.retirement import abandon_version
from include.settings import Settings
from tests.integration.emissions.receipts import (
    CATALOG,
    EMISSION,
    SOURCE,
    Deposits,
    receipts,
    require_exact,
    start_candidate,
    written,
)
from tests.support.stream_process import states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

MODEL = CATALOG.models["savings"]
EVENTS = 500


def test_a_version_that_starts_later_folds_and_emits_only_later_events(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    deposits.append(EVENTS)
    require_exact(settings, deposits, {1, 2})
    number = start_candidate(settings, 1, source_ends(settings))
    later = deposits.from_here(EVENTS)

    own = EMISSION.version_topic(number)
    wait_until(lambda: written(settings, own) >= len(later.expected), "the version emits", timeout_s=240)
    found = {str(record["id"]): record["deposits"] for record in receipts(settings, own)}
    assert found == {number: receipt.deposits for number, receipt in later.expected.items()}

    counts = Counter(event.customerId for event in later.events)

    def is_folded() -> bool:
        records = states(settings, MODEL, f"savings.v{number}.changelog", 1)
        return {key: record.event_count for key, record in records.items()} == counts

    wait_until(is_folded, "the version has the later events, and no others", timeout_s=120)
    abandon_version(settings, MODEL.name, number)


def source_ends(settings: Settings) -> Offsets:
    consumer = log_consumer(settings.kafka_connection)
    try:
        return Offsets.of_ends(end_offsets(consumer, SOURCE, settings.topics.partitions))
    finally:
        consumer.close()
