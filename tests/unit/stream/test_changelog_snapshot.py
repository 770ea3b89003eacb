"""The states that the driver follows on a changelog are the newest record of each key."""

from typing import Any

import pytest

from include.kafka.record_schema import RecordSchema
from include.read_models.balance.model import READ_MODEL
from spark_jobs.streaming.workers.changelog_snapshot import ChangelogSnapshot
from tests.support.changelogs.cases import CASES, ChangelogCase
from tests.unit.query_api.balance_record import balance_value


class BalanceRegistry:
    """Has the schema of balances under every id."""

    def usable_schema(self, schema_id: int) -> RecordSchema:
        """Return the schema."""
        _ = schema_id
        return READ_MODEL.state_schema


@pytest.mark.parametrize("case", CASES, ids=str)
def test_snapshot_has_the_newest_record(case: ChangelogCase) -> None:
    registry: Any = BalanceRegistry()
    consumer: Any = None
    snapshot = ChangelogSnapshot(consumer, registry, "topic", 1)

    for index, (event_count, is_removal) in enumerate(case.log):
        value = None if is_removal else balance_value(event_count=event_count, source_offset=index)
        snapshot.apply(b"k", value)

    found = snapshot.states.get(b"k")
    assert (None if found is None else found.position.offset) == case.newest_if_forgotten
