"""Fields of documents have one of two styles of names; those of declarations stay, and nodes of both releases understand each other."""

import json
from dataclasses import fields

import pytest

from include.nodes.field_names import FieldNames, camel, renamed, snake
from include.nodes.partition_report import PartitionReport
from include.position import POSITION_COLUMNS, Offsets
from include.status.flow_status import FlowStatus
from include.versions.explanation import Explanation

NAMES = sorted(
    {field.name for kind in (PartitionReport, FlowStatus, Explanation) for field in fields(kind)}
    | {*POSITION_COLUMNS}
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_one_form_in_each_style(name: str) -> None:
    assert snake(camel(name)) == snake(name) == name
    assert camel(camel(name)) == camel(name)
    assert "_" not in camel(name)


def test_names_of_declarations_and_of_partitions_stay() -> None:
    record = {"event_count": 3, "state": {"placed_on": 1, "shelfLife": {"in_days": 2}}, "key": "a_b"}
    document = {
        "shown": [record],
        "folded": {"0": 1},
        5: None,
        "event": {"first_name": "x"},
        "events_behind": 7,
        "by_reason": {"not_json": 2},
    }

    found = renamed(document, FieldNames.CAMEL)

    assert found == {
        "shown": [{"eventCount": 3, "state": record["state"], "key": "a_b"}],
        "folded": {"0": 1},
        5: None,
        "event": {"first_name": "x"},
        "eventsBehind": 7,
        "byReason": {"not_json": 2},
    }
    assert renamed(found, FieldNames.SNAKE) == document == renamed(document, FieldNames.SNAKE)


@pytest.mark.parametrize("style", FieldNames)
def test_a_report_of_either_release_is_read(style: FieldNames) -> None:
    report = PartitionReport(
        *("balance", 1, "live", 0, "http://b", ("http://a",), "http://a"),
        is_held=True,
        is_ready=True,
        changelog_topic="t",
        folded=Offsets({0: 6}),
        events_behind=4,
    )
    sent = json.dumps(renamed(report.as_json(), style))

    assert ("events_behind" in sent) is (style is FieldNames.SNAKE)
    assert PartitionReport.from_json(json.loads(sent)) == report
