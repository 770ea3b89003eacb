"""Each field of a stored record is what the events fold to."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.rules import Equal, Expectation


def folds_to(field: str) -> str:
    """Return the name of the expectation for a field."""
    return f"{field} is what the events fold to"


def of_each_key(fields: Sequence[str]) -> list[Expectation]:
    """Stored and replayed text of each field are equal.

    Where one record is absent no field is compared: that the key is missing, or has no events, says all of it.
    """
    both = col("stored").isNotNull() & col("replayed").isNotNull()
    return [
        Expectation(
            folds_to(field),
            Equal(f"stored_{field}_text", f"replayed_{field}_text"),
            {
                f"stored_{field}_text": F.when(both, col(f"stored.{field}")),
                f"replayed_{field}_text": F.when(both, col(f"replayed.{field}")),
            },
        )
        for field in fields
    ]
