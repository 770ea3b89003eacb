"""docs/how-to/upgrade.md: the previous release is replaced by this one, and returns, while events arrive and lookups are answered."""

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from http import HTTPStatus

import httpx
import pytest

from include.kafka.events import event_key
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from tests.integration.releases.hosts import (
    Host,
    NoPreviousReleaseError,
    Release,
    host,
    previous_release,
    this_release,
)
from tests.support.http.local_http import http_client
from tests.support.rebuild.rebuild_readers import Readers
from tests.support.repetition import repeated
from tests.support.stream_process import EventSource
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

MODEL = "balance"
KEYS = [f"customer-{number}" for number in range(50)]
SENDER = "sender"
CENTS = 125
EVENTS_PER_S = 50
TICK_S = 0.5
READY_S = 300.0


class Load:
    """Events of a Kafka client and commands of an application, which sends a command to the other node if one does not take it.

    produced: events by key. outcomes: commands by outcome; `unknown` may or may not be on the log. refusals: commands that no node took.
    """

    def __init__(self, settings: Settings) -> None:
        self.produced: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._ports = settings.query_ports
        self._source = EventSource(settings, MODEL)
        self._keys = itertools.cycle(KEYS)
        self._client = http_client()

    def tick(self) -> None:
        """Send the events and the command of a tick."""
        for key in itertools.islice(self._keys, int(EVENTS_PER_S * TICK_S)):
            event = FundsAdded(customerId=key, amount=Decimal(CENTS) / 100)
            self._source.append_raw(event_key(event), self._source.serializer.serialize(event))
            self.produced[key] += 1
        self._command()

    def _command(self) -> None:
        refusals = []
        for port in self._ports:
            try:
                answer = self._client.post(
                    f"http://127.0.0.1:{port}/api/balance.addFunds",
                    json={"customerId": SENDER, "amount": "1.25"},
                )
            except httpx.ConnectError:
                refusals.append("connection refused")
                continue
            except httpx.HTTPError:
                self.outcomes["unknown"] += 1
                return
            if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                accepted = answer.status_code == HTTPStatus.ACCEPTED
                self.outcomes["accepted" if accepted else f"{answer.status_code} {answer.text}"] += 1
                return
            refusals.append(answer.text)
        self.refusals[" and ".join(refusals)] += 1

    def flush(self) -> None:
        """Wait until the broker has every event."""
        self._source.flush()


@pytest.fixture(scope="module")
def previous(servers: Settings) -> Release:
    try:
        return previous_release(servers)
    except NoPreviousReleaseError as error:
        pytest.skip(f"the previous release is not in this clone: {error}")


@pytest.fixture
def shared(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """What all hosts have in common."""
    with sharing_servers(servers, keep_home, compaction_interval_s=0) as settings:
        yield settings.changed(lake_dir=settings.home / "lake")


@pytest.fixture
def hosts(shared: Settings) -> Iterator[tuple[Host, Host, Host]]:
    """The two nodes, and the host with Airflow and the stream; nothing runs yet."""
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(
                host(
                    shared.changed(
                        home=shared.home / name, node_name=name, node_port=port, query_ports=(port,)
                    ),
                    "query_nodes",
                )
            )
            for name, port in zip(("node-1", "node-2"), shared.query_ports, strict=True)
        ]
        stream = stack.enter_context(host(shared.changed(home=shared.home / "stream"), "airflow,stream"))
        yield nodes[0], nodes[1], stream


def event_count(port: int, key: str) -> int:
    with http_client() as client:
        answer = client.get(f"http://127.0.0.1:{port}/api/read-models/{MODEL}/records/{key}")
    answer.raise_for_status()
    record = answer.json()
    # A node of the previous release has the old name.
    return int(record["eventCount"] if "eventCount" in record else record["event_count"])


def is_ready(node: Host) -> bool:
    with http_client() as client:
        return client.get(f"http://127.0.0.1:{node.settings.node.port}/readyz").is_success


def is_folded(load: Load, port: int) -> bool:
    return all(event_count(port, key) == count for key, count in load.produced.items())


def replace_all(hosts: tuple[Host, Host, Host], old: Release, new: Release, *, stream_first: bool) -> None:
    """Replace each host's release by another, one host after the other."""
    *nodes, stream = hosts
    for one in (stream, *nodes) if stream_first else (*nodes, stream):
        started_s = time.monotonic()
        one.replace(old, new)
        if one is not stream:
            wait_until(lambda node=one: is_ready(node), "the node is ready", READY_S)  # type: ignore[misc]
        log.info("%s: %.0f s", one.components, time.monotonic() - started_s)


def assert_new_events_are_folded(load: Load, port: int) -> None:
    reached = load.produced[KEYS[0]]
    wait_until(lambda: event_count(port, KEYS[0]) >= reached, "new events are folded", READY_S)


def test_a_release_replaces_another_and_returns_under_load(
    shared: Settings, hosts: tuple[Host, Host, Host], previous: Release
) -> None:
    current = this_release(shared)
    ports, load = shared.query_ports, Load(shared)
    for one in hosts:
        one.start(previous)
    wait_until(lambda: all(map(is_ready, hosts[:2])), "the nodes have a version to serve", READY_S)
    with repeated(load.tick, TICK_S):
        wait_until(lambda: all(event_count(port, key) for port in ports for key in KEYS), "all keys", READY_S)
        with Readers(ports, MODEL, KEYS, CENTS, fails_over=True) as readers:
            replace_all(hosts, previous, current, stream_first=False)
            assert_new_events_are_folded(load, ports[0])
            replace_all(hosts, current, previous, stream_first=True)
            assert_new_events_are_folded(load, ports[1])
            replace_all(hosts, previous, current, stream_first=False)
            assert_new_events_are_folded(load, ports[0])
    load.flush()

    log.info("lookups: %s, commands: %s", readers.versions.total(), load.outcomes)
    assert readers.faults == []
    assert set(readers.versions) == {1}
    for port in ports:
        wait_until(lambda port=port: is_folded(load, port), "every event is folded once", READY_S)  # type: ignore[misc]
    accepted, unknown = load.outcomes["accepted"], load.outcomes["unknown"]
    assert set(load.outcomes) <= {"accepted", "unknown"}
    assert load.refusals == {}
    assert accepted <= event_count(ports[0], SENDER) <= accepted + unknown
    current.run(hosts[2].settings, "compact", MODEL)
    assert "PASSED" in current.run(hosts[2].settings, "quality", MODEL).upper()
