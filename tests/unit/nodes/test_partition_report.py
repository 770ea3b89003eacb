"""Reading a node's partition reports: a reply that is not from a query node is never taken for an empty report."""

import pytest

from include.nodes.partition_report import PARTITIONS_PATH, PartitionReport, reports_of
from include.nodes.peers import Peer, PeerDownError
from include.position import Offsets
from tests.support.http.played_server import HTML, Reply, played_server

REPORT = PartitionReport(
    read_model="balance",
    version=1,
    stage="live",
    partition=0,
    owner="http://a",
    standbys=("http://b",),
    reported_by="http://a",
    is_held=True,
    is_ready=True,
    changelog_topic="balance.v1",
    position=7,
    folded=Offsets({0: 5}),
)


def reports(reply: Reply) -> list[PartitionReport]:
    with played_server() as server:
        server.replies = {f"GET {PARTITIONS_PATH}": reply}
        node = Peer(server.url)
        try:
            return reports_of(node)
        finally:
            node.close()


def test_a_report_that_a_node_has_sent_is_read_unchanged() -> None:
    assert (
        reports(Reply(200, [REPORT.as_json(), REPORT.as_json() | {"a field of a newer release": 1}]))
        == [REPORT] * 2
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, HTML),
        Reply(200, {"detail": "no list"}),
        Reply(200, [{"partition": 0}]),
        Reply(302, "[]", {"Location": "/elsewhere"}),
        Reply(503, "[]"),
    ],
)
def test_a_reply_of_no_node_is_an_error(reply: Reply) -> None:
    with pytest.raises(PeerDownError, match=PARTITIONS_PATH):
        reports(reply)
