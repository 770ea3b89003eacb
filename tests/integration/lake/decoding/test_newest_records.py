"""The lake finds the same newest record of a key as every other reader of a changelog, in one batch and in several."""

from decimal import Decimal
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.declarations.read_model import KEY_COLUMN
from include.kafka.registry.writer_schema import writer_schema
from include.lake.tags import CommitTag
from spark_jobs.lake.changelog_batch import newest_records, readable
from spark_jobs.lake.lake_table import LakeTable
from tests.support.changelogs.cases import CASES, ChangelogCase
from tests.support.stream_events import BALANCE
from tests.unit.query_api.balance_record import SCHEMA_ID, balance_value

TAG = CommitTag(BALANCE.name, 1, 1, "compaction")
Row = tuple[bytes, bytes | None, int, int]


def row(case: ChangelogCase, index: int) -> Row:
    """Return a record of Spark's Kafka source, whose amount is its index."""
    event_count, is_removal = case.log[index]
    value = None if is_removal else balance_value(event_count=event_count, amount=Decimal(index))
    return case.name.encode(), value, 0, index


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_table_has_the_newest_record_of_each_changelog(
    lake_spark: SparkSession, tmp_path: Path, *, in_one_batch: bool
) -> None:
    rows = [
        [row(case, i) for case in CASES if i < len(case.log)] for i in range(max(len(c.log) for c in CASES))
    ]
    batches = [list(chain.from_iterable(rows))] if in_one_batch else rows
    writers = {SCHEMA_ID: writer_schema(BALANCE.state_schema.text)}
    table = LakeTable(lake_spark, str(tmp_path / "balance"), 1.0, BALANCE)
    table.ensure()

    for number, batch in enumerate(batches):
        records = lake_spark.createDataFrame(batch, "key binary, value binary, partition int, offset long")
        changes = readable(newest_records(BALANCE, table.columns, writers, records))
        table.merge(changes, TAG, "application", number)

    stored = lake_spark.read.format("delta").load(table.path).collect()
    assert {r[KEY_COLUMN]: (r["event_count"], int(r["amount"])) for r in stored} == {
        case.name: (case.log[newest].event_count, newest)
        for case in CASES
        if (newest := case.newest_if_forgotten) is not None
    }
