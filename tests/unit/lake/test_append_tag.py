"""The tags of commits of an event table, and the slices in which its topic is read."""

import json
from dataclasses import replace

import pytest

from include.lake.append_tag import AppendTag, slice_end
from include.lake.tables import CommitTag
from include.position import Offsets

TAG = AppendTag(
    "trend",
    "trend-records",
    "i_Pm",
    Offsets({0: 5, 1: 0}),
    Offsets({0: 17, 1: 9}),
    rows=18,
    unreadable=3,
    event_types=("TrendRecord",),
    generation=1,
)


def test_a_tag_is_read_as_it_was_written() -> None:
    assert AppendTag.from_json(TAG.to_json()) == TAG
    assert TAG.records == 21


def test_a_tag_of_an_older_release_names_no_event_types() -> None:
    fields = {
        name: value
        for name, value in json.loads(TAG.to_json()).items()
        if name not in {"event_types", "generation"}
    }

    assert AppendTag.from_json(json.dumps(fields)) == replace(TAG, event_types=(), generation=0)


def test_a_tag_of_a_newer_release_is_read() -> None:
    assert AppendTag.from_json(json.dumps({**json.loads(TAG.to_json()), "added_later": 1})) == TAG


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[]", "not JSON", CommitTag("balance", 1, 1, "compaction").to_json()]
)
def test_other_metadata_is_no_tag(text: str | None) -> None:
    assert AppendTag.from_json(text) is None


def test_a_tag_of_an_event_table_is_none_of_a_read_model() -> None:
    assert CommitTag.from_json(TAG.to_json()) is None


@pytest.mark.parametrize(
    ("offsets", "ends", "expected"),
    [
        ({0: 0, 1: 0}, {0: 100, 1: 100}, {0: 5, 1: 5}),
        # What a partition does not have, the others may use in the next slice.
        ({0: 99, 1: 0}, {0: 100, 1: 100}, {0: 100, 1: 5}),
        ({0: 100, 1: 0}, {0: 100, 1: 100}, {0: 100, 1: 10}),
        ({0: 100}, {0: 100, 1: 3}, {0: 100, 1: 3}),
        ({0: 100}, {0: 100}, {0: 100}),
    ],
)
def test_a_slice_is_shared_by_the_partitions_with_records_left(
    offsets: dict[int, int], ends: dict[int, int], expected: dict[int, int]
) -> None:
    assert slice_end(Offsets(offsets), Offsets(ends), 10) == expected


def test_a_slice_has_at_least_one_record_of_each_partition() -> None:
    ends = Offsets(dict.fromkeys(range(20), 7))

    assert slice_end(Offsets(), ends, 10) == dict.fromkeys(range(20), 1)
