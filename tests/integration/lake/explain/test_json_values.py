"""Values as JSON are those of Spark's `to_json`."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, struct, to_json

from include.replay.json_values import json_object

NESTED = pa.struct(
    [("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.map_(pa.string(), pa.float64()))]
)
# Types, and values of each.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int32(): [0, -(2**31)],
    pa.int64(): [2**63 - 1, -1],
    pa.float64(): [
        *(0.0, -0.0, 1.0, 0.1, -2.5, 1e-3, 1e-4, 9_999_999.0, 1e7, 1.5e7, 123_456_789.125, 1e100, 5e-324),
        *(1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 1 / 3, 100.0, 12_345.678),
    ],
    pa.float32(): [0.1, 1.5, 1e10, 3.4028235e38, 1e-45, 16_777_216.0, 1 / 3, 0.001, 0.0001],
    pa.string(): ["", "é\u2028😀", '"\\/', "".join(map(chr, range(32))), "\x7f<>&'"],
    pa.binary(): [b"", b"\x00\xff", bytes(range(100))],
    pa.date32(): [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)],
    pa.timestamp("us", tz="UTC"): [
        datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
    ],
    pa.timestamp("us"): [
        datetime.fromisoformat("2026-01-02T03:04:05"),
        datetime.fromisoformat("2026-01-02T03:04:05.001500"),
    ],
    pa.decimal128(10, 2): [Decimal("0.00"), Decimal("-5.10"), Decimal("12345678.90")],
    pa.decimal128(38, 10): [
        Decimal("0E-10"),
        Decimal("1E-10"),
        Decimal("1234567890123456789012345678.0123456789"),
    ],
    pa.decimal128(5, 0): [Decimal(7), Decimal(-99_999)],
    pa.list_(pa.decimal128(4, 1)): [[], [None, Decimal("1.0")]],
    pa.map_(pa.string(), pa.int64()): [[], [('"k"', None), ("é", 2)]],
    NESTED: [
        {"a": None, "b": None, "c": None},
        {"a": 1, "b": ["x", None], "c": [("y", 1.0), ("z", None)]},
    ],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_values_are_written_as_spark_writes_them(lake_spark: SparkSession, kind: pa.DataType) -> None:
    column = pa.array([*VALUES[kind], None], kind)
    frame = lake_spark.createDataFrame(pa.table({"field": column}))
    if kind == pa.timestamp("us"):
        frame = frame.select(col("field").cast("timestamp_ntz").alias("field"))
    written = frame.select(to_json(struct("field"), {"ignoreNullFields": "false"}).alias("json")).collect()

    found = [json_object([("field", value, kind)]) for value in column.to_pylist()]

    assert found == [row.json for row in written]
