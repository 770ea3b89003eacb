"""A read of a topic has enough tasks to show progress, and none that is tiny or huge."""

import pytest

from spark_jobs.folding.kafka_source import records_per_task


@pytest.mark.parametrize(
    ("records", "per_task"), [(0, 5_000), (20_000, 5_000), (160_000, 10_000), (100_000_000, 250_000)]
)
def test_records_of_a_task(records: int, per_task: int) -> None:
    assert records_per_task(records) == per_task
