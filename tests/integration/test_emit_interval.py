"""A read model with an emit interval writes few records, and exact ones, also if its driver is killed with -9."""

import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest

from include.declarations.load import load_catalog
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

MODEL = load_catalog().models["balance"]
CHANGELOG = "balance.v1.changelog"
INTERVAL_S = 2
CUSTOMERS = ("a", "b", "c")
ROUNDS, ROUND_S = 80, 0.1


@pytest.mark.timeout(600)
def test_an_interval_has_at_most_one_record_for_each_key(
    servers: Settings, keep_home: Callable[[], bool]
) -> None:
    entries = (f"{MODEL.name}:{INTERVAL_S * 1000}",)
    with (
        sharing_servers(servers, keep_home, stream_batch_mode=entries) as settings,
        SharedDriver(settings) as driver,
    ):
        make_topics(settings, MODEL.source_topic)
        source = EventSource(settings, MODEL.source_topic)
        expected: Counter[str] = Counter()

        def append_a_round() -> None:
            source.append(FundsAdded(customerId=key, amount=Decimal("1.25")) for key in CUSTOMERS)
            expected.update(CUSTOMERS)

        def is_folded() -> bool:
            found = states(settings, MODEL, CHANGELOG)
            return {key: record.event_count for key, record in found.items()} == expected

        driver.ensure_running()
        append_a_round()
        wait_until(is_folded, "the driver folds")

        began_s, before = time.monotonic(), records_by_key(settings)
        for _ in range(ROUNDS):
            append_a_round()
            time.sleep(ROUND_S)
        wait_until(is_folded, "the newest states are written")
        # Of the batches that began in this time, and of one that had begun before.
        at_most = (time.monotonic() - began_s) // INTERVAL_S + 2
        written = records_by_key(settings) - before
        assert at_most < ROUNDS
        assert set(written) == set(CUSTOMERS)
        assert max(written.values()) <= at_most
        (fold,) = read_stream_status(settings).of_kind(FlowKind.FOLD)
        assert fold.emit_every_s == INTERVAL_S

        append_a_round()
        driver.kill()
        append_a_round()
        driver.ensure_running()
        wait_until(is_folded, "the driver folds what it had not committed")
        found = states(settings, MODEL, CHANGELOG)
        assert {key: record.state["amount"] for key, record in found.items()} == {
            key: count * Decimal("1.25") for key, count in expected.items()
        }


def records_by_key(settings: Settings) -> Counter[str]:
    keys = [message.key() for message in records_of(settings, CHANGELOG)]
    return Counter(key.decode() for key in keys if isinstance(key, bytes))
