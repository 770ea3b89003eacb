"""If not all keys are compared: a replica has as many keys in total as the log."""

from include.quality.check import ExpectationResult, Mode
from spark_jobs.quality.checked_records import CheckedRecords
from spark_jobs.quality.rules import AtMost, Expectation
from spark_jobs.quality.validation import validate

KEY_COUNT = "as many keys as the log"
EXPECTATION = Expectation(KEY_COUNT, AtMost("difference", 0))


def of_stores(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for each store; none for a full check, which compares every key, and none if keys can leave between two counts."""
    model = check.target.model
    if check.request.mode is Mode.FULL or model.items_leave:
        return []
    results = []
    for read in check.readings:
        differences = check.sampling.key_differences(read.store, read.reading.replicas, check.replay)
        results += validate(read.store.name, differences, [EXPECTATION], ("place",))
    return results
