"""DuckDB marks the same failing keys as Great Expectations, whatever the names of the fields."""

import duckdb
import pandas as pd

from include.quality.check import StoreName
from include.replay.key_expectations import key_expectations
from include.replay.rules import AtMost, Expectation, NotNull, quoted
from include.replay.validation import validate
from tests.support.lake.comparison_rows import FIELDS, ROWS, TYPES, comparison_rows

INDEX = ("place", "key")


def compared(expectations: list[Expectation]) -> pd.DataFrame:
    """Return the rows with the expectations' columns, and `fails_<n>`: whether a row breaks the rule of the n-th one."""
    record = f"STRUCT({', '.join(f'{quoted(field)} VARCHAR' for field in FIELDS)})"
    columns = {name: sql for one in expectations for name, sql in one.columns.items()}
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE comparison (place VARCHAR, key VARCHAR, stored {record}, replayed {record}, stored_offset BIGINT, "
            "required_offset BIGINT, copy INTEGER, stored_has_ended BOOLEAN)"
        )
        for row in comparison_rows():
            values = [dict(zip(FIELDS, one, strict=True)) if isinstance(one, tuple) else one for one in row]
            connection.execute("INSERT INTO comparison VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        added = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
        fails = ", ".join(f"{one.rule.fails} AS fails_{n}" for n, one in enumerate(expectations))
        return connection.execute(f"SELECT *, {fails} FROM (SELECT *, {added} FROM comparison)").df()  # noqa: S608


def test_both_forms_of_a_rule_agree() -> None:
    expectations = key_expectations(TYPES, lambda value, _: value)

    rows = compared(expectations)
    results = validate(StoreName.LAKE, rows, expectations, INDEX)

    expected = {
        one.name: {key for key, (_, failed) in ROWS.items() if one.name in failed} for one in expectations
    }
    marked = {
        one.name: set(rows["key"][rows[f"fails_{n}"].fillna(value=False).astype(bool)])
        for n, one in enumerate(expectations)
    }
    assert marked == expected
    assert {result.expectation: {row["key"] for row in result.sample} for result in results} == expected


def test_a_rule_quotes_its_columns() -> None:
    assert NotNull('a"b').fails == '"a""b" IS NULL'
    assert AtMost("lag", 0.5).fails == '"lag" > 0.5'
    assert AtMost("lag", 0.5, below=True).fails == '"lag" >= 0.5'
