"""Casts, parts of dates, and divisions by a number, which are SQL of DuckDB for some types, have one result in both engines."""

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from foldlake import testing
from include.declarations.read_model import ReadModel, StateField
from include.declarations.rules.duckdb_sql import duckdb_sql
from include.errors import FoldlakeError
from stack.declaration_testing import results

EVENTS = 150
DECIMAL = {"type": "bytes", "logicalType": "decimal"}
DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "timestamp-micros"}
FIELDS: dict[str, Any] = {
    "id": "string",
    "occurredOn": {"type": "long", "logicalType": "timestamp-millis"},
    "flag": "boolean",
    "small": "int",
    "big": "long",
    "text": "string",
    "price": DECIMAL | {"precision": 9, "scale": 2},
    "tiny": DECIMAL | {"precision": 7, "scale": 7},
    "huge": DECIMAL | {"precision": 38, "scale": 3},
    "day": DATE,
    "at": TIME,
    "ratio": "double",
}
SCHEMA = {
    "type": "record",
    "name": "Sample",
    "namespace": "test",
    "foldlake.key": "id",
    "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()],
}
WIDE = DECIMAL | {"precision": 38, "scale": 10}
# Expression of one event -> the type of the field.
ALIKE: list[tuple[str, Any]] = [
    *(
        (f"CAST({one} AS STRING)", "string")
        for one in ("flag", "small", "big", "text", "day", "price", "huge")
    ),
    *((f"CAST({one} AS BIGINT)", "long") for one in ("small", "big", "small * 2")),
    ("int(small)", "int"),
    ("small::bigint", "long"),
    ("try_cast(big AS BIGINT)", "long"),
    *((f"CAST({one} AS DECIMAL(38, 10))", WIDE) for one in ("small", "big", "price", "tiny")),
    ("CAST(price AS DECIMAL(9, 2))", WIDE),
    *((f"CAST({one} AS DATE)", DATE) for one in ("at", "day", "occurredOn")),
    *(("to_date(at)", DATE), ("date(at)", DATE)),
    *((f"{part}({one})", "int") for part in ("year", "month", "day", "dayofmonth") for one in ("at", "day")),
    *((f"{part}(at)", "int") for part in ("hour", "minute", "second")),
    *((f"date_trunc('{unit}', at)", TIME) for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE")),
    *((f"{one} div {number}", "long") for one in ("small", "big") for number in (1, 7, 86400)),
    *(("small % 7", "int"), ("big % 1000", "long")),
    (
        "concat_ws('/', text, CAST(to_date(at) AS STRING), CAST(year(at) * 100 + month(at) AS STRING))",
        "string",
    ),
    *((f"date_format({one}, 'yyyy-MM-dd')", "string") for one in ("at", "day")),
    ("CAST(hour(date_trunc('HOUR', at)) div 6 AS STRING)", "string"),
]
NOT_ALIKE = [
    "CAST(ratio AS STRING)",
    "CAST(ratio AS BIGINT)",
    "CAST(big AS INT)",
    "CAST(text AS BIGINT)",
    "CAST(text AS DATE)",
    "CAST(at AS STRING)",
    "CAST(tiny AS STRING)",
    "CAST(at AS BIGINT)",
    "CAST(price AS BIGINT)",
    "CAST(price AS DECIMAL(9, 1))",
    "CAST(big AS DECIMAL(18, 0))",
    "CAST(CASE WHEN flag THEN price ELSE tiny END AS STRING)",
    "CAST(price AS DECIMAL(38, 2)) * price",
    "small / 2",
    "big % small",
    "small div 0",
    "price % 2",
    "hour(day)",
    "date_trunc('DAY', day)",
    "year(text)",
    "date_format(text, 'yyyy')",
    "CAST(date_trunc('DAY', at) AS STRING)",
]
TIMES = (
    datetime(1, 1, 3, tzinfo=UTC),
    datetime(1582, 10, 10, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 59, 1, tzinfo=UTC),
    datetime(9999, 12, 28, 23, 59, 59, tzinfo=UTC),
)


def model(folder: Path, rules: list[tuple[str, Any]]) -> ReadModel:
    """Return a read model whose state is the value of each rule for the only event of a key."""
    (folder / "Sample.avsc").write_text(json.dumps(SCHEMA))
    names = [f"rule_{number}" for number in range(len(rules))]
    return ReadModel(
        name="samples",
        source_topic="samples",
        event_types=("Sample",),
        key="id",
        state=tuple(StateField(name, ["null", kind]) for name, (_, kind) in zip(names, rules, strict=True)),
        folds={1: {name: f"max({text})" for name, (text, _) in zip(names, rules, strict=True)}},
        schema_folders=(folder,),
    )


def events() -> list[dict[str, Any]]:
    """Return events with values at the ends of their types, and between."""
    chosen = random.Random(39)
    found = []
    for number in range(EVENTS):
        digits = chosen.randrange(1, 28)
        at = (
            chosen.choice(TIMES)
            if number % 2
            else TIMES[0] + timedelta(microseconds=chosen.randrange(315 * 10**15))
        )
        found.append(
            {
                "id": f"event-{number}",
                "occurredOn": at.replace(microsecond=0),
                "flag": chosen.random() < 0.5,
                "small": chosen.choice([0, 1, -1, 2**30 - 1, -(2**30), chosen.randrange(-1000, 1000)]),
                "big": chosen.choice([0, -1, 2**63 - 1, -(2**63), chosen.randrange(-(10**12), 10**12)]),
                "text": chosen.choice(["", "é", "7", "2026-01-01"]),
                "price": Decimal(
                    chosen.choice([0, 1, -1, 10**9 - 1, chosen.randrange(-(10**6), 10**6)])
                ).scaleb(-2),
                "tiny": Decimal(chosen.choice([0, 1, -1, 10**7 - 1, chosen.randrange(-1000, 1000)])).scaleb(
                    -7
                ),
                "huge": Decimal(chosen.choice([0, -1, 10**digits - 1, -(10**digits) + 1])).scaleb(-3),
                "day": chosen.choice(
                    [*(one.date() for one in TIMES), date(2000, 1, chosen.randrange(1, 31))]
                ),
                "at": at,
                "ratio": chosen.randrange(100) / 4,
            }
        )
    return found


@pytest.mark.timeout(300)
def test_each_rule_has_one_result_in_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    samples, made = model(tmp_path, ALIKE), events()

    of_duckdb, of_spark = testing.folded(samples, made), results.folded(spark, samples, made)

    assert len(of_spark) == EVENTS
    assert len(set(map(str, of_spark.values()))) > EVENTS / 2
    differing: dict[str, tuple[object, object]] = {}
    for number, (text, _) in enumerate(ALIKE):
        for key, state in of_spark.items():
            found, expected = of_duckdb[key][f"rule_{number}"], state[f"rule_{number}"]
            if found != expected:
                differing[text] = (found, expected)
    assert not differing


@pytest.mark.parametrize("text", NOT_ALIKE)
def test_a_rule_of_another_type_is_refused(tmp_path: Path, text: str) -> None:
    samples = model(tmp_path, [(text, "string")])

    with pytest.raises(FoldlakeError, match="may have another result in DuckDB"):
        testing.folded(samples, events()[:1])


@pytest.mark.parametrize(
    "text", [text for text, _ in ALIKE if "at)" in text or "at," in text or "(at " in text]
)
def test_a_timestamp_with_a_zone_is_one_in_utc(text: str) -> None:
    """Events have zones in checks, and none in tests of declarations."""
    rule = duckdb_sql(text)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = [[one.replace(tzinfo=None)] for one in TIMES]
        connection.execute('CREATE TABLE plain ("at" TIMESTAMP, text VARCHAR)')
        connection.executemany("INSERT INTO plain VALUES (?, 'x')", rows)
        plain = connection.table("plain")
        zoned = plain.select('CAST("at" AS TIMESTAMPTZ) AS "at", text')

        assert zoned.select(rule).fetchall() == plain.select(rule).fetchall()
