"""What the decoder makes of JSON objects: events of the declared types, or a reason why one cannot be read."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.decode import good_events, undecodable
from spark_jobs.folding.json_decode import JsonDecoder
from spark_jobs.routing.declared_failures import with_failures
from spark_jobs.runtime.session import session_settings
from tests.integration.lake.routing.test_route_columns import DECLARATIONS

PAYMENT = event_schema("CardPayment", (DECLARATIONS,))
NOON = "2026-11-24T12:00:00.125Z"
AT_NOON = datetime(2026, 11, 24, 12, 0, 0, 125_000, tzinfo=UTC)


def logged(**changes: object) -> dict[str, object]:
    return {
        "@timestamp": NOON,
        "logger_name": "payments",
        "thread_name": "t-1",
        "message": "paid",
        "id": "1",
        "account": "bank",
        "amount": 5.25,
    } | changes


def text(**changes: object) -> bytes:
    return json.dumps(logged(**changes)).encode()


def without(member: str) -> bytes:
    return json.dumps({name: value for name, value in logged().items() if name != member}).encode()


def decoded(spark: SparkSession, *values: bytes | None, key: bytes | None = b"t-1") -> Any:  # noqa: ANN401 - a frame
    rows = [(key, None if value is None else bytearray(value), 0, n) for n, value in enumerate(values)]
    records = spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")
    return with_failures(JsonDecoder((PAYMENT,), 1).decode(records), ())


def amounts(spark: SparkSession, *values: bytes) -> list[object]:
    return [row.amount for row in good_events(decoded(spark, *values)).orderBy("offset").collect()]


def test_an_object_becomes_an_event(lake_spark: SparkSession) -> None:
    (row,) = good_events(decoded(lake_spark, text(tags=["a", "b"]))).collect()
    event = (row.event_type, row.id, row.occurredOn.astimezone(UTC), row.terminal, row.amount, row.tags)
    assert event == ("CardPayment", "1", AT_NOON, "t-1", Decimal("5.25"), ["a", "b"])


def test_a_time_is_iso_8601_or_milliseconds(lake_spark: SparkSession) -> None:
    times: tuple[object, ...] = (
        "2026-11-24T12:00:00.125Z",
        "2026-11-24T13:00:00.125+01:00",
        "2026-11-24T13:00:00.125+0100",
        "2026-11-24T12:00:00.125",
        "2026-11-24 12:00:00.125999Z",
        1_795_521_600_125,
    )
    values = (text(**{"@timestamp": time}) for time in times)
    found = [row.occurredOn.astimezone(UTC) for row in good_events(decoded(lake_spark, *values)).collect()]
    assert found == [AT_NOON] * len(times)


def test_a_decimal_is_exact_or_refused(lake_spark: SparkSession) -> None:
    numbers = [b"5", b"-5.2", b'"5.25"', b"5.2500", b"9007199254740993.01", b"1e2"]
    values = [text(amount=0).replace(b'"amount": 0', b'"amount": ' + number) for number in numbers]
    exact = [Decimal(n) for n in ("5.00", "-5.20", "5.25", "5.25", "9007199254740993.01", "100.00")]
    assert amounts(lake_spark, *values) == exact


def test_objects_of_other_types_are_skipped(lake_spark: SparkSession) -> None:
    frame = decoded(lake_spark, text(logger_name="audit", amount="much"), without("logger_name"), b"{}")
    assert good_events(frame).collect() == []
    assert undecodable(frame).collect() == []


UNREADABLE: tuple[tuple[bytes | None, str], ...] = (
    (None, "null_value"),
    (b"not json", "malformed_json"),
    (b"[1]", "malformed_json"),
    (text()[:-10], "malformed_json"),
    (b"\xff\xfe", "invalid_text"),
    (without("account"), "invalid_field"),
    (text(account=None), "invalid_field"),
    (text(amount="5.255"), "invalid_field"),
    (text(amount="5,25"), "invalid_field"),
    (text(amount=0).replace(b": 0}", b": 5.250000000000000001}"), "invalid_field"),
    (text(amount=10**16), "invalid_field"),
    (text(tags="not a list"), "invalid_field"),
    (text(**{"@timestamp": "12:00"}), "invalid_field"),
    (text(**{"@timestamp": "yesterday"}), "invalid_field"),
    (text(**{"@timestamp": 10**15}), "invalid_field"),
    (text(**{"@timestamp": "0000-12-31T00:00:00Z"}), "time_out_of_range"),
    (text(thread_name="t-2"), "invalid_key"),
)


def test_what_cannot_be_read_has_a_reason(lake_spark: SparkSession) -> None:
    # Computed once: both questions are asked of the same rows.
    frame = decoded(lake_spark, *(value for value, _ in UNREADABLE)).localCheckpoint()
    found = {row.offset: row.reason for row in undecodable(frame).collect()}
    assert found == {number: reason for number, (_, reason) in enumerate(UNREADABLE)}
    assert good_events(frame).collect() == []


def test_a_record_without_a_key_has_a_reason(lake_spark: SparkSession) -> None:
    (row,) = undecodable(decoded(lake_spark, text(), key=None)).collect()
    assert row.reason == "null_key"


def test_an_object_is_of_the_first_type_whose_condition_it_satisfies(lake_spark: SparkSession) -> None:
    anything = json.dumps(
        PAYMENT.parsed()
        | {"name": "Anything", "foldlake.json": {}, "fields": PAYMENT.parsed()["fields"][1:3]}
    )
    readers = (PAYMENT, RecordSchema.parse(anything, "test"))
    rows = [(b"t-1", bytearray(v), 0, n) for n, v in enumerate((text(), text(logger_name="audit")))]
    records = lake_spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")
    frame = good_events(JsonDecoder(readers, 1).decode(records)).orderBy("offset")
    found = [(row.event_type, row.terminal) for row in frame.select("event_type", col("terminal")).collect()]
    assert found == [("CardPayment", "t-1"), ("Anything", "t-1")]


def test_a_record_is_parsed_once(lake_spark: SparkSession) -> None:
    """Condition, reason and fields read the parsed value: Spark's optimiser must not parse the text again for each."""
    with session_settings(lake_spark, {"spark.sql.debug.maxToStringFields": "10000"}):
        events = good_events(decoded(lake_spark, text()), condition=col("amount") > 1)
        plan = events._jdf.queryExecution().optimizedPlan().toString()

    # The text is parsed in another form for the digits of a number with an exponent, and of one with more than 38 digits.
    assert plan.count("parseJson(concat(") == 1
