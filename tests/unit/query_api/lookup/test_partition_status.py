"""A partition's report comes from its owner, or, if the owner does not answer, from another node that stores it."""

import json
from dataclasses import replace

from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from query_api.lookup.partition_status import merged

OWN = PartitionReport(
    read_model="balance",
    version=1,
    stage="live",
    partition=0,
    owner="http://b",
    standbys=("http://a",),
    reported_by="http://a",
    is_held=True,
    is_ready=True,
    changelog_topic="t",
    lag_records=9,
)
OWNERS = replace(OWN, reported_by="http://b", lag_records=0)


def test_owners_report_is_used() -> None:
    assert merged([OWN], [OWNERS]) == [OWNERS]


def test_another_nodes_report_is_used_while_the_owner_is_unavailable() -> None:
    not_held = replace(OWN, is_held=False, is_ready=False, lag_records=None)
    elsewhere = replace(OWN, reported_by="http://c")

    assert merged([OWN], []) == [OWN]
    assert merged([not_held], [elsewhere]) == [elsewhere]


def test_report_round_trips_through_json() -> None:
    report = replace(OWN, folded=Offsets({0: 6}))

    fields = json.loads(json.dumps(report.as_json()))

    assert fields["folded"] == {"0": 5}, "the newest offset folded in, not the next one"
    assert PartitionReport.from_json(fields) == report
