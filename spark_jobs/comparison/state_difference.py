"""Compares two frames of states by key, in SQL of `include/rebuild/comparison/state_difference.py`."""

from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from include.rebuild.comparison.state_difference import AFTER, BEFORE, EVENTS, JoinedStates, StateDifference


def compare_states(
    before: DataFrame, after: DataFrame, names_before: Sequence[str], names_after: Sequence[str]
) -> StateDifference:
    """Compare the states of two versions: frames with `key`, `event_count`, and the fields of the state that each version has."""
    old, new = _numbered(before, BEFORE, names_before), _numbered(after, AFTER, names_after)
    both = old.join(new, "key", "full_outer").persist(StorageLevel.MEMORY_AND_DISK_DESER)
    spark = both.sparkSession
    try:
        return JoinedStates(
            _types(before, names_before),
            _types(after, names_after),
            lambda query: spark.sql(query, states=both).toArrow().to_pylist(),
        ).difference()
    finally:
        both.unpersist()


def _numbered(states: DataFrame, side: str, names: Sequence[str]) -> DataFrame:
    columns = (col(f"`{name}`").alias(f"{side}_{number}") for number, name in enumerate(names))
    return states.select("key", col(EVENTS).alias(f"events_{side}"), *columns)


def _types(states: DataFrame, names: Sequence[str]) -> dict[str, str]:
    return {name: states.schema[name].dataType.simpleString() for name in names}
