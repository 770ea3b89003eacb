"""Columns that Spark computes once for each row, however many later columns and filters use them."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, inline, struct


def evaluated_once(frame: DataFrame) -> DataFrame:
    """Return the same rows and columns.

    Spark's optimiser puts the expression of a column in place of each use of it, in filters and in later columns. Columns on columns
    on columns then grow exponentially: the plan, the time to make it, and the work for each row. It does so for no column that a generator
    gives, so the rows go through one. Sources: CollapseProject and PushPredicateThroughNonJoin of Spark's optimiser.
    """
    return frame.select(inline(array(struct("*"))))
