"""Every key with events below the cut has a record."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.rules import Expectation, NotNull

NO_MISSING_KEY = "no key is missing"


def of_each_key(_fields: Sequence[str]) -> list[Expectation]:
    """A stored record exists."""
    stored_key = F.when(col("stored").isNotNull(), col("key"))
    return [Expectation(NO_MISSING_KEY, NotNull("stored_key"), {"stored_key": stored_key})]
