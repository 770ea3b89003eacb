"""A partition's report comes from its owner, or, if the owner does not answer, from another node that stores it."""

from dataclasses import replace

from include.nodes.partition_report import PartitionReport
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
    fields = {**OWN.as_json(), "folded": {"0": 5}, "standbys": ["http://a"]}

    assert PartitionReport.from_json(fields) == replace(OWN, folded={0: 5})
