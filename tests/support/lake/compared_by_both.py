"""Compares states with both engines, which must find the same."""

from collections.abc import Sequence

import duckdb
from pyspark.sql import DataFrame

from include.rebuild.comparison.state_difference import StateDifference
from include.replay.check import version_comparison
from include.replay.check.version_comparison import States
from spark_jobs.comparison.state_difference import compare_states


def compared_by_both(
    before: DataFrame, after: DataFrame, names_before: Sequence[str], names_after: Sequence[str]
) -> StateDifference:
    """Compare frames of states with Spark and with DuckDB, and return what both have found."""
    found = compare_states(before, after, names_before, names_after)
    other = compared_by_duckdb(before, after, names_before, names_after)
    assert other == found
    return found


def compared_by_duckdb(
    before: DataFrame, after: DataFrame, names_before: Sequence[str], names_after: Sequence[str]
) -> StateDifference:
    """Compare frames of states with DuckDB."""
    with duckdb.connect() as connection:
        sides = []
        for name, frame, fields in (("old", before, names_before), ("new", after, names_after)):
            connection.register(name, frame.toArrow())
            columns = connection.table(name)
            types = dict(zip(columns.columns, map(str, columns.types), strict=True))
            sides.append(States(f"FROM {name}", {field: types[field] for field in fields}))
        return version_comparison.compare_states(connection, *sides)
