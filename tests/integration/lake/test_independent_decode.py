"""The two decoders, Spark's and fastavro, accept the same records with the same values: also of other writers, or damaged."""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from confluent_kafka import murmur2
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, unix_micros

from include.declarations.event_types.event_columns import VALUE
from include.declarations.event_types.event_schemas import event_schema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID, SchemaIds
from include.kafka.wire_format import header
from include.position import Offsets
from spark_jobs.folding.decode import HEADER, REASON, EventDecoder, good_events
from spark_jobs.folding.independent_decode import independently_decoded
from tests.support.faults.foreign_writers import decimal, payload, timestamp, with_types

PARTITIONS = 4
WRITERS = {
    1: event_schema("FundsAdded"),
    2: event_schema("FundsWithdrawn"),
    3: with_types("FundsAdded", amount=decimal(18, 1)),
    4: with_types("FundsAdded", occurredOn=timestamp("micros")),
    5: with_types("FundsAdded", amount=decimal(18, 4)),
    6: with_types("FundsWithdrawn", amount=decimal(30, 2), occurredOn=timestamp("micros")),
    7: with_types("FundsAdded", occurredOn="long"),
}
CUSTOMER = "ä customer"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 11, 22, 12, 0, 0, 123_000, tzinfo=UTC)
LATER = NOON.replace(microsecond=123_456)
FIVE = Decimal("5.00")
FIRST = datetime(1, 1, 3, tzinfo=UTC)
LAST = datetime(9999, 12, 29, 23, 59, 59, 999_000, tzinfo=UTC)
YEAR_10000_MILLIS = 253_402_300_800_000

Record = tuple[bytes, bytes, int, int]


def record(
    schema_id: int,
    amount: Decimal | bytes = FIVE,
    occurred_on: datetime | int = NOON,
    customer: str = CUSTOMER,
    moved_by: int = 0,
) -> Record:
    """Return key, value, partition and offset of a record; `moved_by` partitions from where its key belongs."""
    event = {"id": "an id", "occurredOn": occurred_on, "customerId": customer, "amount": amount}
    key = customer.encode()
    partition = (murmur2(key, PARTITIONS) + moved_by) % PARTITIONS
    return key, header(schema_id) + payload(WRITERS[schema_id], event), partition, 0


def unscaled(number: int) -> bytes:
    """Return the bytes of a decimal whose digits need not fit its type."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def replaced(record: Record, old: bytes, new: bytes) -> Record:
    """Return a record with other bytes in key and value."""
    key, value, partition, offset = record
    return key.replace(old, new), value.replace(old, new), partition, offset


RECORDS: list[tuple[Record, tuple[Decimal, datetime] | str]] = [
    (record(1), (FIVE, NOON)),
    (record(2), (FIVE, NOON)),
    (record(1, Decimal("-0.01")), (Decimal("-0.01"), NOON)),
    (record(3, Decimal("5.5")), (Decimal("5.50"), NOON)),
    (record(3, unscaled(10**17)), "undecodable_payload"),
    (record(4, occurred_on=LATER), (FIVE, NOON)),
    (record(5, Decimal("5.0000")), "incompatible_schema"),
    (record(6, occurred_on=LATER), (FIVE, NOON)),
    (record(6, Decimal("12345678901234567.00")), "undecodable_payload"),
    (record(7, occurred_on=1), "incompatible_schema"),
    (record(1, unscaled(10**18)), "undecodable_payload"),
    (record(1, occurred_on=FIRST), (FIVE, FIRST)),
    (record(1, occurred_on=FIRST - timedelta(milliseconds=1)), "time_out_of_range"),
    (record(1, occurred_on=LAST), (FIVE, LAST)),
    (record(1, occurred_on=LAST + timedelta(milliseconds=1)), "time_out_of_range"),
    (record(1, occurred_on=YEAR_10000_MILLIS), "time_out_of_range"),
    (record(1, occurred_on=2**62), "undecodable_payload"),
    (replaced(record(1, customer="plain text"), b"plain", b"pl\xffin"), "invalid_text"),
    (replaced(record(1), b"an id", b"an \xc0d"), "invalid_text"),
    (record(1, customer="x" * 256), (FIVE, NOON)),
    (record(1, customer="x" * 257), "invalid_key"),
    (record(1, customer=""), "invalid_key"),
    ((b"other", *record(1)[1:]), "invalid_key"),
    (record(1, moved_by=1), "wrong_partition"),
    (record(2, moved_by=3), "wrong_partition"),
    ((CUSTOMER.encode(), header(99) + b"x", 0, 0), "unknown_schema_id"),
    ((CUSTOMER.encode(), b"\x00\x00", 0, 0), "wrong_magic"),
    ((CUSTOMER.encode(), header(1), 0, 0), "undecodable_payload"),
]


def frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """Return records as Spark's Kafka source has them, with their index as the offset."""
    rows = [(key, value, partition, offset) for offset, (key, value, partition, _) in enumerate(records)]
    return spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")


@pytest.fixture(scope="module")
def decoder() -> EventDecoder:
    readers = (event_schema("FundsAdded"), event_schema("FundsWithdrawn"))
    return EventDecoder(readers, SchemaIds(WRITERS, stop_at_unknown=False), PARTITIONS)


def test_records_of_any_writer_are_folded_exactly_or_have_a_reason(
    lake_spark: SparkSession, decoder: EventDecoder, caplog: pytest.LogCaptureFixture
) -> None:
    decoded = decoder.decode(frame(lake_spark, (made for made, _ in RECORDS)))

    # Microseconds: a rejected time is none that Python can represent.
    found = decoded.select(
        col(REASON).alias("reason"), "amount", unix_micros("occurredOn").alias("micros"), "offset"
    )
    outcomes = [
        row.reason or (row.amount, EPOCH + timedelta(microseconds=row.micros))
        for row in found.orderBy("offset").collect()
    ]
    assert outcomes == [expected for _, expected in RECORDS]
    problem = "FundsAdded: amount is decimal(18,4), not decimal(18,2)"
    assert f"records with schema id 5 are dead letters: {problem}" in caplog.messages


def test_both_decoders_return_the_same_events(lake_spark: SparkSession, decoder: EventDecoder) -> None:
    records = frame(lake_spark, (made for made, _ in RECORDS))

    assert different(records, decoder) == []
    assert independently_decoded(records, decoder).count() == sum(not isinstance(e, str) for _, e in RECORDS)


def test_both_decoders_reject_what_was_written_before_its_schema_id_existed(
    lake_spark: SparkSession, decoder: EventDecoder
) -> None:
    until = Offsets(dict.fromkeys(range(PARTITIONS), 2))
    rejected = {1: Rejection(until), 2: Rejection(Offsets(), is_open=True), 98: Rejection(until)}
    decoder = replace(decoder, schema_ids=SchemaIds(WRITERS, rejected))
    unknown = (CUSTOMER.encode(), header(98) + b"x", 0, 0)
    records = frame(lake_spark, [record(1), unknown, record(1), record(2), record(3, Decimal("5.5"))])

    reasons = [row[REASON] for row in decoder.decode(records).orderBy("offset").collect()]

    assert reasons == ["unknown_schema_id", "unknown_schema_id", None, "unknown_schema_id", None]
    assert different(records, decoder) == []
    assert independently_decoded(records, decoder).count() == 2
    not_rejected = frame(lake_spark, [record(1)] * 2 + [unknown])
    for decoded in (decoder.decode(not_rejected), independently_decoded(not_rejected, decoder)):
        with pytest.raises(PySparkException, match=f"{UNKNOWN_SCHEMA_ID}=0000000062"):
            decoded.collect()


def test_both_decoders_accept_the_same_damaged_records(
    lake_spark: SparkSession, decoder: EventDecoder
) -> None:
    generator = random.Random(20261122)
    damaged = []
    for _ in range(5_000):
        key, value, partition, _ = record(generator.choice((1, 2, 3, 4, 6)), Decimal("5.5"))
        changed = bytearray(value)
        for _ in range(generator.randint(1, 3)):
            changed[generator.randrange(5, len(changed))] = generator.randrange(256)
        damaged.append(
            (
                key,
                bytes(changed[: generator.choice((len(changed), generator.randrange(5, 60)))]),
                partition,
                0,
            )
        )

    records = frame(lake_spark, damaged)
    assert different(records, decoder) == []
    assert 0 < independently_decoded(records, decoder).count() < len(damaged)


def different(records: DataFrame, decoder: EventDecoder) -> list[object]:
    """Return the events that only one of the decoders returns, or that they return with different values."""
    native = good_events(decoder.decode(records)).drop("value", VALUE, HEADER, REASON)
    independent = independently_decoded(records, decoder).select(*native.columns)
    assert [f.dataType for f in independent.schema] == [f.dataType for f in native.schema]
    return [*native.exceptAll(independent).collect(), *independent.exceptAll(native).collect()]
