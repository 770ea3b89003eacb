"""Requests to other nodes are limited, so that they leave threads for the requests of other nodes."""

from collections import deque

import pytest

from include.nodes.peers import ANSWER_TIMEOUT_S, HOP_ANY, RESERVED_REQUESTS, Peer, PeerDownError

# Nothing listens there, so that a request which is not refused fails at once.
URL = "http://127.0.0.1:1"


def test_a_request_beyond_the_limit_is_refused_and_the_node_is_not_taken_for_down() -> None:
    peer = Peer(URL, deque())

    with pytest.raises(PeerDownError, match="too many requests to other nodes"):
        peer.get("/", HOP_ANY)

    assert not peer.is_down


def test_lookups_that_wait_for_a_bound_leave_room_for_others() -> None:
    free = deque([None] * RESERVED_REQUESTS)

    with pytest.raises(PeerDownError, match="too many requests to other nodes"):
        Peer(URL, free).get("/", HOP_ANY, ANSWER_TIMEOUT_S + 1)
    with pytest.raises(PeerDownError, match="refused"):
        Peer(URL, free).get("/", HOP_ANY)


def test_a_request_that_has_failed_is_no_longer_counted() -> None:
    free = deque([None])
    peer = Peer(URL, free)

    for _ in range(2):
        with pytest.raises(PeerDownError, match="refused"):
            peer.get("/", HOP_ANY)

    assert len(free) == 1
    assert peer.is_down
