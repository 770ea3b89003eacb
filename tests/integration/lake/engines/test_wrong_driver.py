"""What a stream driver has folded with a wrong rule is found by both engines, in each key that it has folded wrongly."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.kafka.topics import changelog_topic
from include.quality.check import CheckRequest, Mode, StoreName
from include.read_models.balance.events import FundsWithdrawn
from include.settings import Settings
from tests.support.balance_copy import with_balance_copy
from tests.support.lake.both_engines import checked_by_both
from tests.support.stream_events import random_event
from tests.support.stream_process import ChangelogProgress, EventSource, make_topics
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

NAME = "skewed"
CUSTOMERS, EVENTS = 60, 300
# It adds what is withdrawn.
WRONG_RULE = "DECLARATIONS = [replace(DECLARATIONS[0], folds={1: {'amount': 'sum(amount)'}})]\n"


@pytest.mark.endurance
def test_both_engines_find_each_key_that_a_driver_has_folded_wrongly(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("right", "wrong")]
    for folder in folders:
        folder.mkdir()
    right, wrong = (with_balance_copy(settings, NAME, folder) for folder in folders)
    with (folders[1] / f"{NAME}.py").open("a", encoding="utf-8") as module:
        module.write(WRONG_RULE)
    events = [random_event(CUSTOMERS) for _ in range(EVENTS)]
    make_topics(settings, NAME)
    EventSource(settings, NAME).append(events)
    progress = ChangelogProgress(right, read_model(NAME, right.declaration_folders), changelog_topic(NAME, 1))

    with stream_driver(wrong):
        wait_until(lambda: progress.event_count() == EVENTS, "every event is folded")

    result = checked_by_both(
        lake_spark, right, CheckRequest(NAME, (StoreName.CHANGELOG,), Mode.FULL, "a wrong driver")
    )
    withdrawn = {event.customerId for event in events if isinstance(event, FundsWithdrawn)}
    assert 0 < len(withdrawn) < CUSTOMERS
    assert not result.passed
    assert result.failing_keys_total == len(withdrawn)
    assert {failing.key for failing in result.failing_keys} <= withdrawn
