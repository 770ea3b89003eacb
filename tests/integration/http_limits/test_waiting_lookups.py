"""Lookups that wait for their minOffset are woken by the commit, use no processor time, and leave room for other requests."""

import json
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from include.nodes.peers import HOP_HEADER, HOP_OWNER
from include.settings import Settings
from query_api.store.backends import load_backend
from query_api.store.base import Binding, Change, ChangelogPosition, StoreWriter
from query_api.store.directory import StoreDirectory
from tests.support.http.http_server import HttpServer, http_server
from tests.support.http.raw_http import RawResponse, connections, exchange, receive, request_head
from tests.support.repetition import repeated
from tests.unit.query_api.balance_record import balance_value
from tests.unit.query_api.lookup.node_files import KEY, NodeFiles

NEXT_OFFSET = 50
FAR_AHEAD = 1_000_000
# With the default settings: three quarters of 64.
CLIENT_LIMIT = 48
OTHER_CLIENT = "127.0.0.2"
MAX_WAIT_S = 1.0
# A commit on a busy machine may come after the lookups have waited: one attempt shows that it wakes them.
ATTEMPTS = 10
# Lookups that each hold a thread while they wait would delay others by 6 s.
MANY = 400
MAX_DELAY_S = 4.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """The HTTP server of a node with one key, whose state is published as by a materializer."""
    with http_server(tmp_path_factory.mktemp("node"), node_http_workers=1) as running:
        node = NodeFiles(running.settings)
        node.create_store(1, [Change(KEY, 3, 0, balance_value())])
        with repeated(lambda: node.publish(1), pause_s=1.0):
            node.publish(1)
            yield running


@contextmanager
def store_writer(settings: Settings) -> Iterator[StoreWriter]:
    """Open the node's store for writing."""
    directory = StoreDirectory(settings.store_dir, load_backend(settings))
    writer = directory.open_writer("balance", 1, 1, Binding("cluster", "balance.v1.changelog", "topic id"))
    try:
        yield writer
    finally:
        writer.close()


def lookup(min_offset: int | None = None, *headers: str) -> bytes:
    """Return the request of a lookup; `min_offset` FAR_AHEAD waits in vain."""
    bound = "" if min_offset is None else f"&minOffset={min_offset}"
    path = f"/api/customers.getBalance?customerId={KEY.decode()}{bound}"
    return request_head("GET", path, "Host: localhost", *headers)


def detail(answer: RawResponse) -> str:
    """Return what an answer says about a problem."""
    return str(json.loads(answer.body)["detail"])


def test_a_commit_wakes_the_lookups_that_wait_for_it(server: HttpServer) -> None:
    with store_writer(server.settings) as writer:
        assert any(are_woken(server.port, writer, attempt) for attempt in range(ATTEMPTS))


def are_woken(port: int, writer: StoreWriter, attempt: int) -> bool:
    """Whether a commit is followed by the answers long before the lookups have waited in vain."""
    source_offset, event_count, end = NEXT_OFFSET + attempt, 4 + attempt, 2 + attempt
    record = balance_value(source_offset=source_offset, event_count=event_count)
    with connections(port, 4, lookup(source_offset)) as waiting:
        have_waited = select.select(waiting, [], [], 0.3)[0] == []
        committed_at = time.monotonic()
        writer.commit(
            {0: [Change(KEY, event_count, end - 1, record)]}, {0: ChangelogPosition(end, time.time())}, {}
        )
        statuses = {receive(one).status for one in waiting}
    return have_waited and statuses == {200} and time.monotonic() - committed_at < MAX_WAIT_S / 2


def test_waiting_lookups_use_no_processor_time(server: HttpServer) -> None:
    (worker,) = server.workers()
    with connections(server.port, CLIENT_LIMIT, lookup(FAR_AHEAD)) as waiting:
        assert select.select(waiting, [], [], 0.1)[0] == [], "all of them wait"
        before = worker.cpu_times()
        assert select.select(waiting, [], [], 0.4)[0] == [], "all of them wait"
        after = worker.cpu_times()
        assert {receive(one).status for one in waiting} == {503}

    assert (after.user + after.system) - (before.user + before.system) < 0.1


def test_lookups_that_find_no_room_to_wait_get_503_at_once(server: HttpServer) -> None:
    with connections(server.port, CLIENT_LIMIT + 12, lookup(FAR_AHEAD)) as lookups:
        answers = [receive(one) for one in lookups]

    refused = [answer for answer in answers if "cannot wait" in detail(answer)]
    waited = [answer for answer in answers if "after 1 s" in detail(answer)]
    assert (len(waited), len(refused)) == (CLIENT_LIMIT, 12)
    assert f"{CLIENT_LIMIT} requests of this client are in progress" in detail(refused[0])
    assert {(one.status, one.headers["foldlake-reason"]) for one in refused} == {(503, "not-up-to-bound")}
    assert refused[0].headers["retry-after"] == "1"


def test_waiting_lookups_of_one_client_leave_room_for_those_of_others(server: HttpServer) -> None:
    with (
        connections(server.port, CLIENT_LIMIT + 1, lookup(FAR_AHEAD)) as waiting,
        connections(server.port, 1, lookup(FAR_AHEAD), OTHER_CLIENT) as (other,),
    ):
        assert "after 1 s" in detail(receive(other))
        assert {receive(one).status for one in waiting} == {503}


def test_lookups_other_nodes_and_health_checks_are_answered_beside_lookups_that_wait(
    server: HttpServer,
) -> None:
    with connections(server.port, MANY, lookup(FAR_AHEAD)) as waiting:
        began = time.monotonic()
        assert exchange(server.port, lookup()).status == 200
        assert exchange(server.port, lookup(None, f"{HOP_HEADER}: {HOP_OWNER}")).status == 200
        assert server.get("/healthz").status_code == 200
        duration_s = time.monotonic() - began
        assert {receive(one).status for one in waiting} == {503}

    assert duration_s < MAX_DELAY_S
