"""Columns that Spark computes once for each row, however many later columns and filters use them."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, inline, struct


def evaluated_once(frame: DataFrame) -> DataFrame:
    """Return the same rows and columns, with each column computed once.

    Spark's optimiser replaces each use of a column, in filters and in later columns, with its expression. With several layers of columns,
    the plan, the time to make it, and the work for each row grow exponentially. The optimiser keeps columns that a generator returns, so
    the rows go through one. Source: CollapseProject and PushPredicateThroughNonJoin of Spark's optimiser.
    """
    return frame.select(inline(array(struct("*"))))
