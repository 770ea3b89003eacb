"""Answers are compressed for clients that accept it, if that saves anything, and are otherwise the same."""

import gzip

import pytest

from tests.unit.query_api.http.parcels import Node, parcels_settings

LONG, SHORT = "/openapi.json", "/api/parcels.getPlace?parcelId=A%201/2&minOffset=1"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    return Node(parcels_settings(tmp_path_factory.mktemp("node")))


def test_a_long_answer_is_compressed(node: Node) -> None:
    plain = node.fast.get(LONG)
    packed = node.fast.get(LONG, headers={"Accept-Encoding": "br, gzip;q=0.8"})

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data) / 4
    assert (plain.headers["Vary"], packed.headers["Vary"]) == ("Accept-Encoding", "Accept-Encoding")


def test_a_compressed_answer_that_has_not_changed_is_not_sent_again(node: Node) -> None:
    accepts = {"Accept-Encoding": "gzip"}
    first = node.fast.get(LONG, headers=accepts)

    again = node.fast.get(LONG, headers={**accepts, "If-None-Match": first.headers["ETag"]})

    assert first.headers["ETag"].startswith("W/")
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("accepts", ["", "identity", "gzip;q=0", "br", "gzip," + "x," * 200])
def test_a_client_that_does_not_accept_it_gets_the_answer_as_it_is(node: Node, accepts: str) -> None:
    answer = node.fast.get(LONG, headers={"Accept-Encoding": accepts})

    assert ("Content-Encoding" in answer.headers, answer.data[:1]) == (False, b"{")


def test_a_short_answer_stays_as_it_is(node: Node) -> None:
    node.beat()
    answer = node.fast.get(SHORT, headers={"Accept-Encoding": "gzip"})

    assert (answer.status_code, "Content-Encoding" in answer.headers) == (200, False)


def test_a_file_is_compressed_and_a_stream_is_not(node: Node) -> None:
    accepts = {"Accept-Encoding": "gzip"}
    style = node.fast.get("/page-files/page.css", headers=accepts)
    stream = node.fast.head("/api/read-models/parcels/changes", headers=accepts)

    assert style.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in stream.headers
