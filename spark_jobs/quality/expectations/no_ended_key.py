"""No record of an item that has ended is stored."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.comparison import STORED_HAS_ENDED
from spark_jobs.quality.rules import Expectation, NotNull

NO_ENDED_KEY = "no key of an item that has ended"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """None of the events in a stored record ends the item."""
    return [
        Expectation(
            NO_ENDED_KEY, NotNull("active_key"), {"active_key": F.when(~col(STORED_HAS_ENDED), col("key"))}
        )
    ]
