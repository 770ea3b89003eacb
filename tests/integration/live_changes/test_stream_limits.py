"""What ends a stream: a node that stops, a client that does not read, too many streams; none of it stops lookups."""

import os
import signal
import socket
from contextlib import ExitStack, suppress
from functools import partial

from query_api.lookup.routing import partition_of
from tests.integration.live_changes.buoys import CHANGES, RECORDS, Buoys
from tests.integration.live_changes.conftest import STREAMS_OF_CLIENT, WORKERS
from tests.integration.live_changes.event_stream import EventStream, event_stream
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

# More than what is kept in memory and what the sockets of both sides take.
MANY_CHANGES = 45_000


def test_streams_beyond_the_limit_are_refused_and_lookups_are_answered(
    nodes: NodeStack, buoys: Buoys
) -> None:
    buoys.put("limit", 1, 1)
    buoys.flush()
    wait_until(lambda: nodes.get(nodes.ports[0], f"{RECORDS}/limit").is_success, "the record is stored")
    wait_until(partial(has_no_streams, nodes), "no stream of another test is open")
    with ExitStack() as opened:
        for _ in range(STREAMS_OF_CLIENT):
            opened.enter_context(event_stream(nodes.ports[0], f"{CHANGES}?key=limit")).wait_until_live()
        refused = None
        # The kernel chooses the worker of each connection: the other ones may have room.
        for _ in range(STREAMS_OF_CLIENT * (WORKERS - 1) + 1):
            try:
                opened.enter_context(event_stream(nodes.ports[0], f"{CHANGES}?key=limit"))
            except AssertionError as error:
                refused = str(error)
        assert refused is not None
        assert refused.startswith("429 ")
        assert "too-many-streams" in refused
        assert nodes.get(nodes.ports[0], f"{RECORDS}/limit").is_success
        assert (
            'foldlake_change_streams{read_model="buoy-position"}'
            in nodes.get(nodes.ports[0], "/metrics").text
        )

    wait_until(partial(has_no_streams, nodes), "the node has noticed that the clients are gone")


def has_no_streams(nodes: NodeStack) -> bool:
    """Whether no stream of the first node is open."""
    text = nodes.get(nodes.ports[0], "/metrics").text
    return 'foldlake_change_streams{read_model="buoy-position"}' not in text or (
        'foldlake_change_streams{read_model="buoy-position"} 0.0' in text
    )


def open_streams(opened: ExitStack, port: int, path: str, count: int) -> list[EventStream]:
    """Open live streams until there are `count`; a worker that has no room for one refuses it."""
    streams: list[EventStream] = []
    while len(streams) < count:
        with suppress(AssertionError):
            streams.append(opened.enter_context(event_stream(port, path)).wait_until_live())
    return streams


def test_a_client_that_does_not_read_is_told_and_continues_where_it_was(
    nodes: NodeStack, buoys: Buoys
) -> None:
    target = f"{CHANGES}?prefix=slow"
    partitions = nodes.settings.topics.partitions
    # In the same partition: who has received its change has passed all changes of the slow one.
    fast = next(
        name
        for name in map("fast-{}".format, range(100))
        if partition_of(name.encode(), partitions) == partition_of(b"slow", partitions)
    )
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        slow.settimeout(60)
        slow.connect(("127.0.0.1", nodes.ports[1]))
        slow.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        while b"event: live" not in received:
            received += slow.recv(65_536)
        for _ in range(MANY_CHANGES):
            buoys.put("slow", 1, 1, label="a label that makes the record longer")
        buoys.flush()
        with ExitStack() as opened:
            # So many that at least one is of the same worker as the slow one.
            streams = open_streams(opened, nodes.ports[1], f"{CHANGES}?key={fast}", STREAMS_OF_CLIENT + 1)
            buoys.put(fast, 1, 1)
            buoys.flush()
            for stream in streams:
                stream.wait_for(lambda s: bool(s.named("changed")), "other clients are not affected")
        while more := slow.recv(1_000_000):
            received += more
            if received.endswith(b"\r\n0\r\n\r\n") or b": heartbeat" in received[-500:]:
                break
    assert b'event: closed\ndata: {"reason":"too-slow"' in received[-1000:]
    last_id = received.rpartition(b"\nid: ")[2].partition(b"\n")[0].decode()
    last_count = received.count(b"event: changed")
    assert 0 < last_count < MANY_CHANGES

    with event_stream(nodes.ports[0], target, last_id) as resumed:
        resumed.wait_for(lambda s: len(s.named("changed")) == MANY_CHANGES - last_count, "the rest is sent")
        counts = [event.data["eventCount"] for event in resumed.named("changed")]
        assert counts == list(range(last_count + 1, MANY_CHANGES + 1))


def test_a_node_that_stops_ends_its_streams(nodes: NodeStack, buoys: Buoys) -> None:
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=stop") as stream:
        stream.wait_until_live()
        server = nodes.pid("node-1-http")
        os.kill(server, signal.SIGTERM)
        stream.wait_for(lambda s: s.has_ended, "the stream has ended")
        assert [event.data["reason"] for event in stream.named("closed")] == ["shutdown"]
        assert not stream.error

    wait_until(lambda: nodes.is_replaced("node-1-http", server), "it is restarted")
    nodes.settled()
    buoys.put("stop", 1, 1)
    buoys.flush()
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=stop", stream.last_id) as resumed:
        resumed.wait_for(lambda s: bool(s.of_key("stop")), "what happened meanwhile is sent")
