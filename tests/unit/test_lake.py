"""What a commit of `lake/<model>` says of itself, which columns a table has, and how the command line shows it."""

from datetime import UTC, datetime

import pytest

from cli.lake import to_lines
from include.lake import CommitTag, table_fields
from include.lake_status import LakeCommit, LakeStatus
from include.read_model import read_model

TAG = CommitTag("balance", 3, 2, "compaction", {0: 17, 1: 0}, {0: 40, 1: 2}, "5f0c")


def test_a_tag_is_read_as_it_was_written() -> None:
    assert CommitTag.from_json(TAG.to_json()) == TAG


@pytest.mark.parametrize(
    "text", [None, "", "by hand", "{}", "[]", "null", '{"version": 3}', '{"read_model": 1}']
)
def test_what_is_no_tag_is_not_taken_for_one(text: str | None) -> None:
    assert CommitTag.from_json(text) is None


def test_a_tag_with_a_field_that_is_not_known_is_not_taken_for_one() -> None:
    assert CommitTag.from_json(TAG.to_json().replace("version", "edition")) is None


def test_a_table_has_key_state_and_position() -> None:
    names = [field.name for field in table_fields(read_model("balance"))]

    assert names == ["key", "amount", "event_count", "source_partition", "source_offset", "occurred_on"]


def test_the_command_line_shows_figures_and_history() -> None:
    at = datetime(2026, 11, 21, 8, 40, 11, tzinfo=UTC)
    history = (LakeCommit(8, at, "MERGE", TAG), LakeCommit(7, at, "RESTORE", None))
    status = LakeStatus(
        read_model="balance",
        path="lake/balance",
        rows=1234,
        files=4,
        bytes=2_500_000,
        delta_version=8,
        version=3,
        complete_up_to={0: 40, 1: 2},
        events_behind=1200,
        newest_age_s=125.0,
        history=history,
    )

    assert to_lines(status) == [
        "balance: version 3",
        "  table           lake/balance",
        "  rows            1,234",
        "  files           4, 2.5 MB",
        "  brought up      2 min ago, Delta version 8",
        "  complete up to  0: 40, 1: 2  (source partition: offset)",
        "  events behind   1,200",
        "  Delta version  when (UTC)           operation     read-model version",
        "  8              2026-11-21 08:40:11  compaction    3",
        "  7              2026-11-21 08:40:11  restore",
    ]
