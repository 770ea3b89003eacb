"""A client that has the newest answer gets 304, by the fast path and by Flask; any change of the answer changes its tag."""

import json
from pathlib import Path

import pytest

from query_api.http.delivery.conditional import entity_tag, for_condition
from tests.unit.query_api.http.parcels import Node, parcels_settings
from tests.unit.query_api.http.stops import PARTITIONS, Answer, StopsNode, other_node, stops_settings

LOOKUP = "/api/parcels.getPlace?parcelId=A%201/2"
# The fast path, and Flask with a lookup and a record.
TARGETS = (LOOKUP, f"{LOOKUP}&decimals=string", "/api/read-models/parcels/records?key=A%201/2")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(parcels_settings(tmp_path))


@pytest.mark.parametrize("target", TARGETS)
def test_an_unchanged_answer_is_not_sent_again(node: Node, target: str) -> None:
    first = node.fast.get(target)
    again = node.fast.get(target, headers={"If-None-Match": first.headers["ETag"]})
    other = node.fast.get(target, headers={"If-None-Match": '"1-0.0.0-00000000"'})

    assert (first.status_code, again.status_code, again.data) == (200, 304, b"")
    assert {"Foldlake-Position", "Foldlake-As-Of", "Foldlake-Lag-Ms", "ETag", "Cache-Control"} <= set(
        again.headers.keys()
    )
    assert "Content-Type" not in again.headers
    assert (other.status_code, other.data) == (200, first.data)


def test_a_problem_has_no_tag(node: Node) -> None:
    missing = node.fast.get("/api/parcels.getPlace?parcelId=nobody", headers={"If-None-Match": "*"})

    assert (missing.status_code, "ETag" in missing.headers) == (404, False)


def test_the_tag_changes_with_version_position_and_content() -> None:
    tags = {
        entity_tag(1, (0, 42, 3), b"{}"),
        entity_tag(2, (0, 42, 3), b"{}"),
        entity_tag(1, (1, 42, 3), b"{}"),
        entity_tag(1, (0, 43, 3), b"{}"),
        entity_tag(1, (0, 42, 4), b"{}"),
        entity_tag(1, (0, 42, 3), b"{ }"),
    }

    assert len(tags) == 6


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ('"a", W/"1-0.0.1-2b4c9d11"', 304),
        ("1-0.0.1-2b4c9d11", 200),
        ('"1-0.0.1-2b4c9d1"', 200),
        (", ".join(['"1-0.0.1-2b4c9d11"'] * 200), 200),
        (None, 200),
    ],
)
def test_the_tag_must_be_in_the_list(condition: str | None, status: int) -> None:
    reply = 200, [("Content-Type", "application/json"), ("Etag", '"1-0.0.1-2b4c9d11"')], b"{}"

    assert for_condition(reply, condition)[0] == status


def test_another_node_s_tag_reaches_the_client(tmp_path: Path) -> None:
    def answer(_: str) -> Answer:
        return 200, {"ETag": '"1-1.5.1-00000000"', "Content-Type": "application/json"}, json.dumps({"n": 5})

    with other_node(answer) as url:
        node = StopsNode(stops_settings(tmp_path), url)
        node.store("stops", 1, {})
        node.publish()
        targets = [f"/api/stops.get?stopId={number}" for number in range(2 * PARTITIONS + 8)]
        found = [node.client.get(target) for target in targets]
        proxied = next(one for one in zip(targets, found, strict=True) if one[1].status_code == 200)
        again = node.client.get(proxied[0], headers={"If-None-Match": '"1-1.5.1-00000000"'})

    assert (proxied[1].headers["ETag"], again.status_code) == ('"1-1.5.1-00000000"', 304)
