"""A fault in any place is found by both engines, which report its key and the position of its record."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel
from include.kafka.wire_format import HEADER_BYTES
from include.lake.tables import table_path
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.rebuild.request import RebuildRequest
from include.replay.key_expectations import folds_to
from include.settings import Settings
from query_api.store.stored_form import pack, unpack
from spark_jobs.build_staging import build_staging
from stack.lifecycle import start, stop
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import CheckedLedger, Record, named
from tests.support.lake.registered_version import registered_version
from tests.support.node_store import NodeStore

AMOUNT, COUNT = folds_to("amount"), folds_to("event_count")
CUSTOMER = "customer 0/é"
NEWEST_AMOUNT = """
from dataclasses import replace
from include.read_models.balance import model
DECLARATIONS = [replace(model.READ_MODEL, name={name!r}, source_topic={name!r}, key={key},
    folds={{1: {{"amount": "max_by(amount, offset)"}}}}, merges={{}})]
"""


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> CheckedLedger:
    """Some customers. The amount of one consists of bytes that a file has nowhere else."""
    ledger = CheckedLedger(settings.changed(systems=()), "planted")
    ledger.append(6, 2)
    ledger.add(CUSTOMER, Decimal("9876543.21"))
    ledger.source.flush()
    return ledger


def assert_found(result: CheckResult, wrong: Record, right: Record) -> None:
    """Assert that a check has found one wrong amount, and names the record."""
    assert named(result).keys() == {wrong.key}
    for one in result.failing_keys:
        assert one.expectations == (AMOUNT,)
        assert (one.stored["amount"], one.replayed["amount"]) == (str(wrong.amount), str(right.amount))
        assert position(one.stored) == (str(right.source_partition), str(right.source_offset))


def position(record: Mapping[str, str | None]) -> tuple[str | None, ...]:
    return record["source_partition"], record["source_offset"]


def test_a_wrong_cent_in_a_parquet_file(ledger: CheckedLedger, lake_spark: SparkSession) -> None:
    right = ledger.records[CUSTOMER]
    wrong = right.plus(cents=1)
    ledger.write_lake(lake_spark, ledger.records.values())
    before, after = (int(one.amount.scaleb(2)).to_bytes(4, "big") for one in (right, wrong))
    table = table_path(ledger.settings.lake_root, ledger.name)
    files = [Path(file.removeprefix("file://")) for file in DeltaTable(table).file_uris()]
    (file,) = (file for file in files if before in file.read_bytes())
    file.write_bytes(file.read_bytes().replace(before, after))
    # Hadoop's checksum, which only Spark reads.
    file.with_name(f".{file.name}.crc").unlink()

    assert_found(ledger.check(lake_spark, StoreName.LAKE), wrong, right)


@pytest.fixture
def nodes(ledger: CheckedLedger) -> Iterator[Settings]:
    """Both nodes, with right records."""
    ledger.write_changelog(ledger.records.values())
    start(ledger.settings, ("query_nodes",))
    yield ledger.settings
    stop(ledger.settings)


def test_a_wrong_cent_in_the_store_of_a_node(
    ledger: CheckedLedger, nodes: Settings, lake_spark: SparkSession
) -> None:
    right = ledger.records[CUSTOMER]
    wrong = right.plus(cents=1)
    request = CheckRequest(ledger.name, (StoreName.NODES,), Mode.FULL, "nodes")
    loaded = checked_by_both(lake_spark, nodes.changed(quality_wait_s=60.0), request)
    assert loaded.passed, loaded.verdict
    store = NodeStore(nodes, ledger.name, right.source_partition)
    key = CUSTOMER.encode()
    record = unpack(key, store.stored(key))
    schema = fastavro.parse_schema(ledger.model.state_schema.parsed())
    fields: Any = fastavro.schemaless_reader(io.BytesIO(record.value[HEADER_BYTES:]), schema)
    buffer = io.BytesIO(record.value[:HEADER_BYTES])
    buffer.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(buffer, schema, fields | {"amount": wrong.amount})
    store.put(key, pack(key, record.event_count, record.offset, buffer.getvalue()))

    result = checked_by_both(lake_spark, nodes, request)

    store.restore()
    assert_found(result, wrong, right)
    (failing,) = result.failing_keys
    assert failing.place.startswith(f"node-1 partition {right.source_partition} (")


def test_a_lost_a_doubled_and_a_reordered_event_in_the_changelog(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = CheckedLedger(settings, "planted-orders", module=NEWEST_AMOUNT)
    ledger.append(5, 3)
    right = [replace(record, amount=Decimal("3.00")) for record in ledger.records.values()]
    lost, doubled, reordered, *others = right
    wrong = [lost.plus(events=-1), doubled.plus(events=1), reordered.plus(cents=-100)]
    ledger.write_changelog([*wrong, *others])

    result = ledger.check(lake_spark, StoreName.CHANGELOG)

    assert named(result) == {lost.key: (COUNT,), doubled.key: (COUNT,), reordered.key: (AMOUNT,)}
    assert {one.key: position(one.stored) for one in result.failing_keys} == {
        one.key: (str(one.source_partition), str(one.source_offset)) for one in wrong
    }


def test_a_wrong_fold_of_the_job_that_writes_staging(ledger: CheckedLedger, lake_spark: SparkSession) -> None:
    wrong: ReadModel = replace(ledger.model, folds={1: {"amount": "max(amount)"}}, merges={})
    request = RebuildRequest({ledger.name: 1}, "a wrong fold", approve=True, grace_h=1.0)
    number = registered_version(ledger.settings, ledger.model, request, "wrong")
    build_staging(lake_spark, ledger.settings, wrong, number)

    result = checked_by_both(
        lake_spark,
        ledger.settings,
        CheckRequest(ledger.name, (StoreName.STAGING,), Mode.FULL, "wrong", number),
    )

    assert named(result) == dict.fromkeys(ledger.records, (AMOUNT,))
    assert {one.key: position(one.stored) for one in result.failing_keys} == {
        one.key: (str(one.source_partition), str(one.source_offset)) for one in ledger.records.values()
    }
