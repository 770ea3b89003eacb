"""The key of every record has events."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.rules import Expectation, NotNull

NO_EXTRA_KEY = "no key without events"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """Each stored record has a replayed one."""
    # Not simply "a replayed record exists": a missing key has one too, for the report.
    is_extra = col("stored").isNotNull() & col("replayed").isNull()
    return [
        Expectation(NO_EXTRA_KEY, NotNull("replayed_key"), {"replayed_key": F.when(~is_extra, col("key"))})
    ]
