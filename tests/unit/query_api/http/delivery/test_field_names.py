"""Answers have names in camelCase; a client of an earlier release gets its own, and learns that they are deprecated."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from include.nodes.field_names import FIELD_NAMES_HEADER, FieldNames
from include.nodes.peers import HOP_ANY, HOP_HEADER
from query_api.changes.key_change import ChangeEvent, ChangeKind, KeyState, Selection
from query_api.http.changes.events import Snapshot, change_frame
from query_api.http.delivery.field_names import DEPRECATED, SUNSET
from query_api.http.json_text import RecordForm
from query_api.lookup.lookup_results import AnswerAge
from query_api.lookup.model_pages import Part
from tests.unit.query_api.http.parcels import Node, parcels_settings
from tests.unit.query_api.http.stops import Answer, StopsNode, other_node, stops_settings

RECORDS = "/api/read-models/parcels/records"
# Path -> a name in its document, in both styles.
DOCUMENTS = {
    "/api/read-models": ("sourceTopic", "source_topic"),
    "/api/partitions": ("eventsBehind", "events_behind"),
    "/api/status": ("asOf", "as_of"),
    "/problems": ("mayRetry", "may_retry"),
    "/problems/unknown-key": ("mayRetry", "may_retry"),
    RECORDS: ("readModel", "read_model"),
    f"{RECORDS}?partition=0": ("sourceOffset", "source_offset"),
    f"{RECORDS}?key=A%201/2": ("eventCount", "event_count"),
    f"{RECORDS}/A%201%2F2": ("occurredOn", "occurred_on"),
}
OLD = {FIELD_NAMES_HEADER: "snake_case"}
PEER_OF_THE_LAST_RELEASE = {HOP_HEADER: HOP_ANY}
PEER = {HOP_HEADER: HOP_ANY, FIELD_NAMES_HEADER: "camelCase"}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Node:
    return Node(parcels_settings(tmp_path_factory.mktemp("node")))


@pytest.fixture
def node(started: Node) -> Node:
    started.beat()
    return started


def names(value: object) -> set[str]:
    """Return the names of all fields, without those of states."""
    match value:
        case dict():
            inner = [names(one) for name, one in value.items() if name != "state"]
            return set(value).union(*inner)
        case list():
            return set().union(*map(names, value))
    return set()


def get(node: Node, path: str, headers: Mapping[str, str] | None = None) -> tuple[set[str], bool]:
    """Return the names in an answer, and whether it says that they are deprecated."""
    answer = node.fast.get(path, headers=headers or {})
    assert answer.status_code == 200, answer.text
    return names(json.loads(answer.text)), "Deprecation" in answer.headers


@pytest.mark.parametrize("path", DOCUMENTS)
def test_names_are_in_camel_case(node: Node, path: str) -> None:
    found, is_deprecated = get(node, path)

    assert DOCUMENTS[path][0] in found
    assert not [name for name in found if "_" in name]
    assert not is_deprecated


@pytest.mark.parametrize("path", DOCUMENTS)
def test_old_names_by_parameter_and_by_header(node: Node, path: str) -> None:
    by_parameter = get(node, f"{path}{'&' if '?' in path else '?'}fieldNames=snake_case")
    by_header = get(node, path, OLD)

    assert by_parameter == by_header
    found, is_deprecated = by_header
    assert DOCUMENTS[path][1] in found
    assert DOCUMENTS[path][0] not in found
    assert is_deprecated


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_parameter_comes_before_the_header(node: Node, path: str) -> None:
    target = f"{path}{'&' if '?' in path else '?'}fieldNames=camelCase"

    assert get(node, target, OLD) == get(node, path)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_node_or_job_of_the_last_release_gets_old_names(node: Node, path: str) -> None:
    found, is_deprecated = get(node, path, PEER_OF_THE_LAST_RELEASE)

    assert DOCUMENTS[path][1] in found
    assert not is_deprecated
    assert DOCUMENTS[path][0] in get(node, path, PEER)[0]


@pytest.mark.parametrize("path", [*DOCUMENTS, "/api/read-models/parcels/changes"])
def test_other_names_are_refused(node: Node, path: str) -> None:
    answer = node.fast.get(f"{path}{'&' if '?' in path else '?'}fieldNames=kebab-case")

    assert answer.status_code == 400
    assert json.loads(answer.text)["type"] == "urn:foldlake:problem:invalid-field-names"


def test_the_headers_of_what_is_deprecated_say_since_when_and_until_when(node: Node) -> None:
    headers = node.fast.get(RECORDS, headers=OLD).headers

    # RFC 9745: an Item Structured Header with a date.
    since = datetime.fromtimestamp(int(headers["Deprecation"].removeprefix("@")), UTC)
    until = parsedate_to_datetime(headers["Sunset"])
    assert (since, until) == (DEPRECATED, SUNSET)
    assert until - since >= timedelta(days=180)
    assert node.fast.get(headers["Link"].partition(">")[0].removeprefix("<")).status_code == 200


def test_an_old_client_that_pages_by_after_is_told_of_the_cursor(node: Node) -> None:
    first = node.fast.get(f"{RECORDS}?partition=0&cursor=")
    by_after = node.fast.get(f"{RECORDS}?partition=0&after=")
    by_peer = node.fast.get(f"{RECORDS}?partition=0&after=", headers=PEER)
    both = node.fast.get(f"{RECORDS}?partition=0&after=A&cursor=A")

    assert first.data == by_after.data == by_peer.data
    assert ["Deprecation" in one.headers for one in (first, by_after, by_peer)] == [False, True, False]
    assert (both.status_code, json.loads(both.text)["type"]) == (400, "urn:foldlake:problem:invalid-after")


@pytest.mark.parametrize("style", FieldNames)
@pytest.mark.parametrize("of_other_node", FieldNames)
def test_a_record_of_a_node_of_either_release(
    tmp_path: Path, style: FieldNames, of_other_node: FieldNames
) -> None:
    """The other node answers as its release does, whatever this node asks for."""
    texts = {
        FieldNames.CAMEL: '{"readModel":"stops","version":1,"key":"a","state":{"in_use":1.50},"eventCount":3}',
        FieldNames.SNAKE: '{"read_model":"stops","version":1,"key":"a","state":{"in_use":1.50},"event_count":3}',
    }
    asked: list[str] = []

    def answer(target: str) -> Answer:
        asked.append(target)
        return 200, {"Content-Type": "application/json"}, texts[of_other_node]

    with other_node(answer) as url:
        node = StopsNode(stops_settings(tmp_path), url)
        node.store("stops", 1, {})
        node.publish()
        targets = [f"/api/read-models/stops/records/{number}?fieldNames={style}" for number in range(40)]
        bodies = {found.text for target in targets if (found := node.client.get(target)).status_code == 200}

    assert bodies == {texts[style]}
    assert not [target for target in asked if "fieldNames" in target], (
        "the last release has no such parameter"
    )


@pytest.mark.parametrize(
    ("style", "name"), [(FieldNames.CAMEL, "eventCount"), (FieldNames.SNAKE, "event_count")]
)
def test_changes_and_snapshots_have_them_too(style: FieldNames, name: str) -> None:
    form = RecordForm(names=style)
    removed = ChangeEvent(0, 0, b"a", None, 5, None, KeyState(5, is_removed=True, point=None))
    # As another node of either release lists it.
    listed: list[dict[str, Any]] = [{"key": "a", "event_count": 5}, {"key": "b", "eventCount": 5}]
    part = Part(listed, None, AnswerAge("", 0), 0)
    snapshot = Snapshot(lambda *_: part, 1, 1, Selection(), form=form)

    frames = [change_frame(removed, ChangeKind.REMOVED, form), *snapshot.frames()]

    data = [
        json.loads(line[6:]) for frame in frames for line in frame.decode().split("\n") if line[:5] == "data:"
    ]
    assert [one[name] for one in data] == [5, 5, 5]
