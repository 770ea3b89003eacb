"""Changes of frames of decoded events: the names that declarations use, and columns that Spark computes once.

The internal names are those of include/declarations/event_types/event_columns.py.
"""

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, col, inline, struct

from include.declarations.event_types.event_columns import short_names
from include.kafka.record_schema import RecordSchema


def with_short_names(events: DataFrame, readers: tuple[RecordSchema, ...]) -> DataFrame:
    """Return the events with each internal column under its short name, too. A plain rename, which Spark merges with what reads it."""
    present = set(events.columns)
    names = {short: internal for short, internal in short_names(readers).items() if internal in present}
    return events.select("*", *(col(internal).alias(short) for short, internal in names.items()))


def without_short_names(events: DataFrame, readers: tuple[RecordSchema, ...]) -> DataFrame:
    """Return the events without these names: a frame that is cached would have each event type twice."""
    names = short_names(readers)
    return events.select(*(name for name in events.columns if name not in names))


def with_name(events: DataFrame, short: str, internal: str) -> DataFrame:
    """Return the events with an internal column under a short name, which nothing else has then."""
    others = (name for name in events.columns if name.casefold() != short.casefold())
    return events.select(*others, col(internal).alias(short))


def evaluated_once(frame: DataFrame) -> DataFrame:
    """Return the same rows and columns, with each column computed once.

    Spark's optimiser replaces each use of a column, in filters and in later columns, with its expression. With several layers of columns,
    the plan, the time to make it, and the work for each row grow exponentially. The optimiser keeps columns that a generator returns, so
    the rows go through one. Source: CollapseProject and PushPredicateThroughNonJoin of Spark's optimiser.
    """
    return frame.select(inline(array(struct("*"))))
