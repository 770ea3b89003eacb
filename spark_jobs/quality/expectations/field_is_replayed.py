"""Each field of a stored record equals the fold of the events."""

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.functions import col

from spark_jobs.quality.rules import Equal, Expectation


def folds_to(field: str) -> str:
    """Return the name of a field's expectation."""
    return f"{field} is what the events fold to"


def of_each_key(fields: Sequence[str]) -> list[Expectation]:
    """The stored and the replayed text of each field are equal.

    If either record is absent, no field is compared: other expectations report a missing or extra key.
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
