"""A read model with another key than its events' folds each event once, however its driver is killed, and only under its own key."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from include.declarations.catalog import load_catalog
from include.kafka.topics import dead_letter_topic
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.status import read_stream_status
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_rekey"
MODEL = load_catalog((DECLARATIONS,)).models["daily-deposits"]
CHANGELOG = "daily-deposits.v1.changelog"
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = 3_000
Totals = dict[str, tuple[int, Decimal]]


@pytest.fixture(scope="module")
def home(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    with sharing_servers(
        servers,
        keep_home,
        stream_real_time_interval_s=5,
        stream_catch_up_threshold_events=2_000,
        stream_catch_up_batch_events=2_000,
        stream_spare_queries=0,
        read_models_dir=DECLARATIONS,
    ) as settings:
        make_topics(settings, MODEL.events_topic)
        yield settings


@pytest.fixture(scope="module")
def rekeying_driver(home: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(home) as shared:
        yield shared


def deposits(first: int) -> list[FundsAdded]:
    return [
        FundsAdded(
            customerId=f"customer-{number % 211}",
            amount=(Decimal(number % 1_000 + 1) / 4).quantize(Decimal("0.01")),
            occurredOn=START + timedelta(hours=number % 240),
        )
        for number in range(first, first + EVENTS)
    ]


def totals(events: list[FundsAdded]) -> Totals:
    counts: Counter[str] = Counter()
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for event in events:
        day = f"{event.occurredOn:%Y-%m-%d}"
        counts[day] += 1
        sums[day] += event.amount
    return {day: (counts[day], sums[day]) for day in counts}


def folded(settings: Settings) -> Totals:
    found = states(settings, MODEL, CHANGELOG)
    return {key: (state.state["deposits"], state.state["total"]) for key, state in found.items()}


def test_the_fold_is_exact_after_a_kill_and_a_record_under_another_key_is_a_dead_letter(
    home: Settings, rekeying_driver: SharedDriver
) -> None:
    source = EventSource(home, MODEL.events_topic)
    events = deposits(0)
    source.append(events)
    rekeying_driver.ensure_running()
    wait_until(lambda: bool(folded(home)), "some days are folded", timeout_s=120)
    more = deposits(EVENTS)
    source.append(more)
    rekeying_driver.kill()
    events += more
    # By another program: an event of a day in the partition of its customer.
    EventSource(home, MODEL.source_topic).append(more[:1])
    rekeying_driver.ensure_running()
    wait_until(lambda: folded(home) == totals(events), "every day is exact", timeout_s=240)
    assert len(records_of(home, MODEL.source_topic)) == len(events) + 1

    def letters() -> list[tuple[object, object]]:
        found = records_of(home, dead_letter_topic(MODEL.source_topic))
        return [(dict(letter.headers() or [])["reason"], letter.key()) for letter in found]

    expected = [(b"invalid_key", more[0].customerId.encode())]
    wait_until(lambda: letters() == expected, "the dead letter", timeout_s=120)
    assert folded(home) == totals(events)
    (route,) = read_stream_status(home).routes
    assert (route.route, route.output_topic) == ("daily-deposits-by-key", MODEL.source_topic)
