"""When a read model's table is loaded anew, its columns, and the output of `./foldlake lake`."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cli.lake import event_table_lines, read_model_lines
from include.declarations.load import read_model
from include.lake.status import EventTableStatus, ReadModelStatus, TableStatus
from include.lake.tables import table_fields
from include.lake.tagged_table import NewestTag, TableCommit
from include.lake.tags import AppendTag, CommitTag
from include.position import Offsets
from spark_jobs.lake.live_lake import invalid_reason

TAG = CommitTag("balance", 3, 2, "compaction", Offsets({0: 17, 1: 0}), Offsets({0: 40, 1: 2}), "5f0c", "i_Pm")


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
    newest = NewestTag(replace(TAG, topic_id=newest_id), 3, overwritten_by)

    assert invalid_reason(newest, topic_id) == why


def test_a_table_has_key_state_and_position() -> None:
    names = [field.name for field in table_fields(read_model("balance"))]

    assert names == ["key", "amount", "event_count", "source_partition", "source_offset", "occurred_on"]


AT = datetime(2026, 11, 21, 8, 40, 11, tzinfo=UTC)
STATUS = ReadModelStatus(
    TableStatus(
        name="balance",
        path="lake/balance",
        rows=1234,
        files=4,
        bytes=2_500_000,
        delta_version=8,
        tag=TAG,
        newest_age_s=125.0,
        history=(TableCommit(8, AT, "MERGE", TAG), TableCommit(7, AT, "RESTORE")),
        behind=1200,
    ),
    live_version=3,
)
APPENDED = AppendTag("trend", "trends", "i_Pm", Offsets(), Offsets({0: 9}), rows=7, unreadable=2, lost=0)
EVENTS = EventTableStatus(
    TableStatus(
        name="trend",
        path="lake/trend",
        rows=None,
        files=1,
        bytes=100_000,
        delta_version=1,
        tag=APPENDED,
        newest_age_s=1.0,
        history=(TableCommit(1, AT, "WRITE", APPENDED),),
    ),
    source_topic="trends",
    months={"2017-01": 4, "2017-02": 3},
)


def test_the_command_line_shows_figures_and_history() -> None:
    assert read_model_lines(STATUS) == [
        "balance: version 3",
        "  table           lake/balance",
        "  rows            1,234",
        "  files           4, 2.5 MB",
        "  updated         2 min ago, Delta version 8",
        "  complete up to  0: 40, 1: 2  (source partition: offset)",
        "  events behind   1,200",
        "  Delta version  when (UTC)           operation     read-model version",
        "  8              2026-11-21 08:40:11  compaction    3",
        "  7              2026-11-21 08:40:11  restore",
    ]


def test_the_command_line_shows_an_event_table_whose_lag_and_rows_are_unknown() -> None:
    assert event_table_lines(EVENTS) == [
        "trend: event table of trends",
        "  table           lake/trend",
        "  rows            unknown: there are files without statistics",
        "  files           1, 0.1 MB",
        "  updated         1 s ago, Delta version 1",
        "  months          2, 2017-01 to 2017-02",
        "  appended up to  0: 9  (partition: offset)",
        "  records behind  unknown: Kafka does not respond",
        "  unreadable      2 records of the topic",
        "  Delta version  when (UTC)           operation     rows",
        "  1              2026-11-21 08:40:11  append        7",
    ]


def test_programs_read_the_same_fields_as_from_earlier_releases() -> None:
    common = {"path", "rows", "files", "bytes", "delta_version", "newest_age_s", "history"}
    read_model, event_table = STATUS.as_json(), EVENTS.as_json()

    assert read_model.keys() == common | {
        *("read_model", "version", "live_version", "complete_up_to", "events_behind"),
    }
    assert event_table.keys() == common | {
        *("event_table", "source_topic", "months", "offsets", "records_behind", "unreadable", "lost"),
    }
    assert read_model["history"][1] == {
        "delta_version": 7,
        "committed_at": AT,
        "operation": "RESTORE",
        "tag": None,
    }
    assert event_table["history"][0]["tag"]["offsets"] == {0: 9}
    assert (read_model["events_behind"], event_table["unreadable"]) == (1200, 2)


def test_a_table_that_does_not_contain_the_live_version_says_what_it_waits_for() -> None:
    lines = read_model_lines(replace(STATUS, live_version=4), "the task promote_lake, which is running")

    assert lines[:3] == [
        "balance: version 3; version 4 is live",
        "  waits for       the task promote_lake, which is running",
        "  table           lake/balance",
    ]
