"""The log still has its first events; without them, nothing can be verified."""

from include.quality.check import ExpectationResult
from spark_jobs.quality.checked_records import CheckedRecords

WHOLE_LOG = "the log is whole"


def of_stores(check: CheckedRecords) -> list[ExpectationResult]:
    """Return one result for the source topic, attributed to the first store."""
    lost = check.lost_events
    sample = tuple({"partition": str(p), "first_offset": str(offset)} for p, offset in lost.items())
    partitions = len(check.target.cut)
    return [ExpectationResult(check.request.stores[0], WHOLE_LOG, partitions, len(lost), sample=sample)]
