"""The tags of commits of `lake/<model>`, a table's columns, and the output of `./foldlake lake`."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cli.lake import to_lines
from include.declarations.load import read_model
from include.lake.status import LakeCommit, LakeStatus
from include.lake.tables import CommitTag, table_fields
from include.position import Offsets
from spark_jobs.lake.live_lake import invalid_reason
from spark_jobs.lake.tagged_commit import TaggedCommit

TAG = CommitTag("balance", 3, 2, "compaction", Offsets({0: 17, 1: 0}), Offsets({0: 40, 1: 2}), "5f0c", "i_Pm")


def test_a_tag_survives_a_round_trip() -> None:
    assert CommitTag.from_json(TAG.to_json()) == TAG


def test_the_json_of_a_tag_is_stable() -> None:
    assert TAG.to_json() == (
        '{"read_model":"balance","version":3,"fold_revision":2,"operation":"compaction",'
        '"changelog_offsets":{"0":17,"1":0},"complete_up_to":{"0":40,"1":2},'
        '"promotion_id":"5f0c","topic_id":"i_Pm"}'
    )


@pytest.mark.parametrize(
    "text", [None, "", "by hand", "{}", "[]", "null", '{"version": 3}', '{"read_model": 1}']
)
def test_other_metadata_is_not_a_tag(text: str | None) -> None:
    assert CommitTag.from_json(text) is None


def test_a_tag_with_an_unknown_field_is_not_a_tag() -> None:
    assert CommitTag.from_json(TAG.to_json().replace("version", "edition")) is None


def test_a_tag_of_a_release_without_topic_ids_is_read() -> None:
    text = TAG.to_json().replace(',"topic_id":"i_Pm"', "")

    assert CommitTag.from_json(text) == replace(TAG, topic_id="")


@pytest.mark.parametrize(
    ("newest_id", "overwritten_by", "topic_id", "why"),
    [
        ("i_Pm", "", "i_Pm", ""),
        ("", "", "i_Pm", ""),
        ("i_Pm", "", "other", "the changelog was recreated (its topic id was i_Pm and is now other)"),
        (
            "i_Pm",
            "DELETE in version 4",
            "i_Pm",
            "another program changed the table (DELETE in version 4)",
        ),
    ],
)
def test_a_table_is_rebuilt_if_its_offsets_are_invalid(
    newest_id: str, overwritten_by: str, topic_id: str, why: str
) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    newest = TaggedCommit(replace(TAG, topic_id=newest_id), 3, at, overwritten_by)

    assert invalid_reason(newest, topic_id) == why


def test_a_table_has_key_state_and_position() -> None:
    names = [field.name for field in table_fields(read_model("balance"))]

    assert names == ["key", "amount", "event_count", "source_partition", "source_offset", "occurred_on"]


AT = datetime(2026, 11, 21, 8, 40, 11, tzinfo=UTC)
STATUS = LakeStatus(
    read_model="balance",
    path="lake/balance",
    rows=1234,
    files=4,
    bytes=2_500_000,
    delta_version=8,
    version=3,
    live_version=3,
    complete_up_to=Offsets({0: 40, 1: 2}),
    events_behind=1200,
    newest_age_s=125.0,
    history=(LakeCommit(8, AT, "MERGE", TAG), LakeCommit(7, AT, "RESTORE", None)),
)


def test_the_command_line_shows_figures_and_history() -> None:
    assert to_lines(STATUS) == [
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


def test_a_table_that_does_not_contain_the_live_version_says_what_it_waits_for() -> None:
    lines = to_lines(replace(STATUS, live_version=4), "the task promote_lake, which is running")

    assert lines[:3] == [
        "balance: version 3; version 4 is live",
        "  waits for       the task promote_lake, which is running",
        "  table           lake/balance",
    ]
