"""A record is of a key that has events."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.rules import Expectation, NotNull

NO_EXTRA_KEY = "no key without events"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """A stored record has a replayed one beside it."""
    # Not "there is a replayed record": a missing key has one, for the report to show.
    is_extra = col("stored").isNotNull() & col("replayed").isNull()
    return [
        Expectation(NO_EXTRA_KEY, NotNull("replayed_key"), {"replayed_key": F.when(~is_extra, col("key"))})
    ]
