"""Every key that an event can have is found in every path, query, page and cursor; every other one is refused with the reason."""

import json
from collections.abc import Iterator
from urllib.parse import quote, unquote_to_bytes

import pytest
from werkzeug.test import Client, TestResponse

from include.kafka.wire_format import MAX_KEY_BYTES, key_fault
from include.nodes.record_requests import record_target
from include.settings import Settings
from tests.support.http.record_keys import HARD_KEYS, random_keys
from tests.unit.query_api.http.parcels import Node, parcels_settings

RECORDS = "/api/read-models/parcels/records"
KEYS = tuple(dict.fromkeys((*HARD_KEYS, *random_keys(36, 100))))
# Of the lookup in parcels.py.
MAX_PARCEL_BYTES = 20


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return parcels_settings(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def stored(settings: Settings) -> Node:
    return Node(settings, keys=KEYS)


@pytest.fixture
def node(stored: Node) -> Node:
    stored.beat()
    return stored


def get(client: Client, target: str) -> TestResponse:
    """Send a request as the server hands it on: a path is decoded once, to bytes as Latin-1; a query is not."""
    path, _, query = target.partition("?")
    decoded = unquote_to_bytes(path).decode("latin-1")
    return client.get("/", environ_overrides={"PATH_INFO": decoded, "QUERY_STRING": query})


def key_of(answer: TestResponse) -> str:
    assert answer.status_code == 200, answer.text
    key: str = json.loads(answer.text)["key"]
    return key


def test_the_target_of_a_record_has_its_key() -> None:
    for key in (*KEYS, *random_keys(10, 2000)):
        path, _, query = record_target("a/b", key, {"version": 3}).partition("?")

        in_query = [unquote_to_bytes(one[4:]) for one in query.split("&") if one.startswith("key=")]
        in_path = unquote_to_bytes(path.removeprefix("/api/read-models/a%2Fb/records").removeprefix("/"))
        assert [*in_query, in_path][0] == key.encode()
        assert query.endswith("version=3")
        segments = unquote_to_bytes(path).decode().split("/")[1:]
        assert not {"", ".", ".."} & set(segments), "clients and proxies rewrite such a path"


def test_every_key_is_found_in_path_and_query(node: Node) -> None:
    for key in KEYS:
        node.beat()
        encoded = quote(key, safe="")
        targets = (
            f"{RECORDS}/{encoded}",
            f"{RECORDS}?key={encoded}",
            f"{RECORDS}?key={encoded.replace('%20', '+')}&version=1",
            f"{RECORDS}?minOffset=42&key={encoded}",
            record_target("parcels", key),
        )

        assert [key_of(get(node.fast, target)) for target in targets] == [key] * len(targets)


def test_every_key_is_found_by_a_named_lookup(node: Node) -> None:
    for key in KEYS:
        node.beat()
        path = f"/api/parcels.getPlace?parcelId={quote(key, safe='')}"
        targets = (path, f"{path}&minOffset=1")
        answers = [get(client, target) for client in (node.fast, node.flask) for target in targets]

        status = 200 if len(key.encode()) <= MAX_PARCEL_BYTES else 400
        assert [answer.status_code for answer in answers] == [status] * 4, key


def pages(node: Node, first: str, parameter: str, limit: int) -> Iterator[list[str]]:
    following: str | None = ""
    while following is not None:
        more = f"&{parameter}={quote(following, safe='')}" if following else ""
        answer = get(node.flask, f"{RECORDS}?{first}limit={limit}{more}")
        assert answer.status_code == 200, answer.text
        page = json.loads(answer.text)
        yield [record["key"] for record in page["records"]]
        following = page["next"]


@pytest.mark.parametrize(("first", "parameter"), [("partition=0&", "after"), ("", "cursor")])
@pytest.mark.parametrize("limit", [1, 7])
def test_every_key_is_listed_once_in_order(node: Node, first: str, parameter: str, limit: int) -> None:
    listed = [key for page in pages(node, first, parameter, limit) for key in page]

    assert listed == sorted(KEYS, key=str.encode)


def test_every_key_is_a_prefix(node: Node) -> None:
    for key in KEYS:
        node.beat()
        answer = get(node.flask, f"{RECORDS}?limit=1000&prefix={quote(key, safe='')}")

        found = {record["key"] for record in json.loads(answer.text)["records"]}
        assert found == {one for one in KEYS if one.startswith(key)}


@pytest.mark.parametrize(
    ("target", "slug"),
    [
        (f"{RECORDS}/%ff", "invalid-path"),
        (f"{RECORDS}/a%ffb", "invalid-path"),
        (f"{RECORDS}/%C0%AF", "invalid-path"),
        (f"{RECORDS}/%ED%A0%80", "invalid-path"),
        (f"{RECORDS}/%F4%90%80%80", "invalid-path"),
        ("/api/read-models/%ff/records/a", "invalid-path"),
        ("/map/%ff", "invalid-path"),
        (f"{RECORDS}/", "invalid-key"),
        (f"{RECORDS}/{'x' * 512}", "invalid-key"),
        (f"{RECORDS}?key=", "invalid-key"),
        (f"{RECORDS}?key={'x' * 512}", "invalid-key"),
        (f"{RECORDS}?key=%ff", "invalid-query"),
        (f"{RECORDS}?key=%C0%AF", "invalid-query"),
        (f"{RECORDS}?key=%", "invalid-query"),
        (f"{RECORDS}?key=%zz", "invalid-query"),
        (f"{RECORDS}?key=a%2", "invalid-query"),
        (f"{RECORDS}?key=a&key=a", "repeated-parameter"),
        (f"{RECORDS}?key=a&partition=0", "unknown-parameter"),
        (f"{RECORDS}/a?key=a", "unknown-parameter"),
        (f"{RECORDS}?partition=0&after={'x' * 512}", "invalid-after"),
        (f"{RECORDS}?partition=0&prefix={'x' * 512}", "invalid-prefix"),
        (f"{RECORDS}?prefix={'x' * 60_000}", "invalid-prefix"),
        ("/api/read-models/parcels/changes?key=", "invalid-key"),
        ("/api/read-models/parcels/changes?prefix=", "invalid-prefix"),
        (f"/api/read-models/parcels/changes?key={'x' * 512}", "invalid-key"),
        ("/api/read-models/parcels/changes?key=%ff", "invalid-query"),
        ("/api/parcels.getPlace?parcelId=%", "invalid-query"),
        ("/api/parcels.getPlace?parcelId=%zz", "invalid-query"),
        ("/api/parcels.getPlace?parcelId=%ff", "invalid-query"),
        ("/api/parcels.getPlace?parcelId=%C0%AF", "invalid-query"),
        ("/explain?readModel=parcels&key=%ff", "invalid-query"),
        (f"/explain?readModel=parcels&key={'x' * 4097}", "invalid-key"),
    ],
)
def test_what_is_no_key_is_refused_with_the_reason(node: Node, target: str, slug: str) -> None:
    for client in (node.fast, node.flask):
        answer = get(client, target)

        assert (answer.status_code, json.loads(answer.text)["type"]) == (400, f"urn:foldlake:problem:{slug}")


@pytest.mark.parametrize(("size", "status"), [(MAX_KEY_BYTES, 503), (MAX_KEY_BYTES + 1, 400)])
def test_a_command_refuses_a_key_that_no_event_may_have(node: Node, size: int, status: int) -> None:
    answer = node.flask.post("/api/parcels.weigh", json={"parcelId": "x" * size, "grams": 5})

    # Without Kafka, an accepted command ends with 503.
    assert answer.status_code == status
    if status == 400:
        assert json.loads(answer.text)["errors"] == [
            {"field": "parcelId", "error": "has 257 bytes of UTF-8; at most 256 are allowed"}
        ]


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        (b"", "is empty"),
        (b"\xff", "is not UTF-8"),
        (b"\xc0\xaf", "is not UTF-8"),
        (b"\xed\xa0\x80", "is not UTF-8"),
        (b"a\xc3", "is not UTF-8"),
        (b"x" * (MAX_KEY_BYTES + 1), "has 257 bytes of UTF-8; at most 256 are allowed"),
    ],
)
def test_no_record_has_another_key(key: bytes, fault: str) -> None:
    assert key_fault(key) == fault
    assert [key_fault(one.encode()) for one in KEYS] == [None] * len(KEYS)


def test_pages_show_a_key_as_text(node: Node) -> None:
    headers = {"Accept": "text/html"}
    page = node.flask.get(f"{RECORDS}?key={quote('<script>x</script>')}", headers=headers).text

    assert "unknown-key" in page
    assert "<script>" not in page
