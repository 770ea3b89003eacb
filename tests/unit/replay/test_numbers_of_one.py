"""A fault of one row, key, event or record is reported in the singular."""

from dataclasses import replace

import pytest

from include.lake.event_table_check import EventTableCheck
from include.quality.check import UncheckableError
from include.replay.table_proof import LogComparison
from tests.support.lake.comparison_example import EXAMPLE


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (
            1,
            (
                "1 event of the log without a row; 1 row too many; 1 row with other values than the log, 1 row as proved before, "
                "1 event compared, 1 record not appended yet"
            ),
        ),
        (
            2_000,
            (
                "2,000 events of the log without a row; 2,000 rows too many; 2,000 rows with other values than the log, "
                "2,000 rows as proved before, 2,000 events compared, 2,000 records not appended yet"
            ),
        ),
    ],
)
def test_a_proof_counts_rows_and_events(number: int, text: str) -> None:
    assert str(LogComparison(number, number, number, number, number, number)) == text


def test_a_comparison_counts_keys() -> None:
    one = replace(EXAMPLE, changed=1, added=0, gone=0, after=replace(EXAMPLE.after, keys=1))

    assert one.counts == "1 of 1 key differs"
    assert EXAMPLE.counts == "400 of 4,003 keys differ"


def test_an_event_table_counts_rows() -> None:
    assert str(EventTableCheck(1, 0, 1, 0, 1, 0)) == (
        "1 row instead of 0; 1 row with the partition and offset of another row; 1 event in the topic twice, by id"
    )


def test_a_refusal_counts_keys() -> None:
    refused = str(UncheckableError.of_several_partitions("visits", {"a": [0, 1]}, 1, 1))

    assert refused.startswith("visits cannot be checked: events of 1 of 1 key are in several")
