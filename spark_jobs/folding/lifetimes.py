"""The states of items that end: grouped so that Spark forgets them, and written as removals once they have ended.

A watermark on the items' creation times removes old states. An event is a dead letter once its record is later than its item's
lifetime allows (spark_jobs/folding/decode.py), so every event that is folded finds the state of its item: whether it is folded depends on the
event alone, and a replay makes the same decision.
"""

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.functions import array, col, lit, struct

from include.declarations.expiry import Expiry
from include.declarations.read_model import ReadModel
from include.kafka.record_schema import CREATION_TOLERANCE_HOURS
from include.position import REMOVAL_HEADERS
from include.settings import StreamSettings
from spark_jobs.folding.expressions.columns import column_of

# Whether the item of a state has ended: a column beside those of its state record.
HAS_ENDED = "record:has_ended"
CREATED = "record:created"
NEWEST = "record:newest_item"
# States are removed in steps of this size.
WINDOW = "10 minutes"
# How far the partitions of a topic may be read apart, measured in the times of their records. While a query catches up, it reads all
# partitions up to their ends before the watermark moves.
READING_TOLERANCE_HOURS = 1


def item_groups(model: ReadModel, events: DataFrame, key: Column) -> GroupedData:
    """Return the events grouped by this key, and by a window of their items' creation if the read model's items end, or expire."""
    if model.lifetime is not None:
        hours = model.lifetime.hours + CREATION_TOLERANCE_HOURS + READING_TOLERANCE_HOURS
        time = model.lifetime.created
    elif model.expires is not None:
        # What is later than the allowed lateness is not on the topic.
        hours, time = 2 * READING_TOLERANCE_HOURS, model.expires.time
    else:
        return events.groupBy(key)
    # Spark parses the name of this column as SQL.
    created = events.withColumn(CREATED, col(time)).withWatermark(f"`{CREATED}`", f"{hours} hours")
    return created.groupBy(key, F.window(CREATED, WINDOW).alias("record:window"))


def has_ended(model: ReadModel) -> Column:
    """Return the aggregate of a group of events that is true if one of them ends the item."""
    ended = F.bool_or(F.coalesce(column_of(model.ended), lit(False))) if model.ended else lit(False)  # noqa: FBT003 - a column
    return ended.alias(HAS_ENDED)


def expired_by(expires: Expiry, after_s: float, newest: Column) -> Column:
    """Return whether a state has expired for this time, given the time of the newest item, from the fields of the state; false if either is null."""
    return F.coalesce(col(expires.field) < newest - F.make_dt_interval(secs=lit(after_s)), lit(False))  # noqa: FBT003 - a column


def unexpired(model: ReadModel, states: DataFrame, stream: StreamSettings) -> DataFrame:
    """Return the states that have not expired, given the state of every key; all states of a read model without an expiry."""
    if model.expires is None:
        return states
    newest = states.agg(F.max(model.expires.field).alias(NEWEST))
    has_expired = expired_by(model.expires, model.expires.after_s(stream), col(NEWEST))
    return states.crossJoin(F.broadcast(newest)).where(~has_expired).drop(NEWEST)


def removal_headers() -> Column:
    """Return the headers of a removal: up to where the events of the item are folded, as decimal text."""
    return array(
        *(
            struct(lit(name).alias("key"), col(name).cast("string").cast("binary").alias("value"))
            for name in REMOVAL_HEADERS
        )
    )
