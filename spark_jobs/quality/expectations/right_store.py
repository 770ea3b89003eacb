"""A store contains the version that is checked, and could be read completely."""

from include.quality.check import ExpectationResult
from spark_jobs.quality.checked_records import CheckedRecords

RIGHT_STORE = "the store is of this version, and answers"


def of_stores(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for each store: the faults found while reading it."""
    return [
        ExpectationResult(
            read.store.name,
            RIGHT_STORE,
            max(len(read.reading.replicas), len(read.reading.faults)),
            len(read.reading.faults),
            finding="; ".join(read.reading.faults),
        )
        for read in check.readings
    ]
