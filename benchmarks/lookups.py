"""HTTP lookups by key, local and proxied; all records of a partition; the rate of filling a store, and the delay until a record is served."""

import argparse
import json
import ssl
import statistics
import tempfile
import time
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from operator import truediv
from pathlib import Path

import httpx

from benchmarks.support.deposits import low_latency_producer
from benchmarks.support.lookup_client import LookupRun, NodeConnection, run_lookups
from benchmarks.support.report import latency_line, percentile, print_environment
from include.access.api_key import create_key
from include.access.caller import Scope
from include.kafka.compacted_topics import changelog_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.nodes.certificates import create
from include.nodes.partition_report import PartitionReport
from include.nodes.peer_tls import CA, certificate_path, key_path
from include.nodes.record_client import OWNER, PartitionReplica
from include.nodes.record_requests import NO_SAMPLING, records_path
from include.nodes.record_stream import stream_records
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from query_api.access.key_file import write_key_file
from query_api.lookup.routing import partition_of
from query_api.materializer.changelog_follower import ChangelogFollower
from query_api.store.backends import load_backend
from stack.components.query_nodes import node_settings
from stack.lifecycle import start
from tests.support.changelog_writer import ChangelogWriter
from tests.support.http.http_server import HttpServer
from tests.support.temporary_stack import free_ports, temporary_stack
from tests.support.waiting import wait_until

CONNECTIONS = 32
WARM_UP_S = 3.0
READY_TIMEOUT_S = 120
FRESHNESS_PROBES = 300
ROUNDS = 12


def main() -> None:
    """Fill a changelog, then measure how fast it is read, lookups, and the delay until a new record is served."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--customers", type=int, default=200_000, help="keys in the changelog (200,000)")
    arguments.add_argument("--seconds", type=float, default=15.0, help="duration of each load (15)")
    arguments.add_argument(
        "--secured",
        action="store_true",
        help=f"only compare lookups with API keys, with TLS, and without either, {ROUNDS} times by turns",
    )
    given = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as settings:
        print_environment(settings)
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        questions = [(f"customer-{n}", f"{n // 100}.{n % 100:02d}") for n in range(given.customers)]
        for offset, (customer, amount) in enumerate(questions):
            writer.write(customer, Decimal(amount), 1, offset)
        writer.flush()
        if given.secured:
            measure_secured(settings, questions, given.seconds)
            return
        measure_hydration(settings, given.customers)
        start(settings, only=("query_nodes",))
        owned = wait_until_ready(settings, given.customers)
        measure_streams(questions, owned)
        measure_lookups(settings, questions, owned, given.seconds)
        measure_freshness(settings, writer, owned)


def measure_secured(settings: Settings, questions: list[tuple[str, str]], seconds: float) -> None:
    """Look up keys without protection, with API keys, and with TLS, by turns; print the rates and their ratios within each round.

    Three HTTP servers read the store of one node. Each has one worker: with more, the rate depends on how connections are divided.
    """
    create(settings.home, {"callers": "127.0.0.1"})
    certificate, private = certificate_path(settings.home, "callers"), key_path(settings.home, "callers")
    key, secret = create_key("benchmark", frozenset({Scope.READ}))
    placements, (port, *_) = (f"{READ_MODEL.name}=replicated",), settings.query_ports
    started = settings.changed(placements=placements, query_ports=(port,), node_http_workers=1)
    start(started, only=("query_nodes",))
    (node,) = node_settings(started)
    write_key_file(node.store_dir, [key])
    ca = str(certificate_path(settings.home, CA))
    # Settings, and what a client then needs: a key's secret, the CA.
    kinds: dict[str, tuple[dict[str, object], str, str]] = {
        "open": ({}, "", ""),
        "keys": ({"auth": "keys"}, secret, ""),
        "TLS": ({"tls_cert_file": certificate, "tls_key_file": private}, "", ca),
    }
    rates, costs = ({name: list[float]() for name in kinds} for _ in range(2))
    with ExitStack() as stack:
        servers = {}
        for name, (changed, used_secret, used_ca) in kinds.items():
            (port,) = free_ports(1)
            server = servers[name] = HttpServer(node.changed(node_port=port, query_ports=(port,), **changed))
            stack.callback(server.stop)
            url = server.settings.loopback_url(port)
            context = ssl.create_default_context(cafile=used_ca or None)
            wait_until(partial(_has_all, url, questions, used_secret, context), name, READY_TIMEOUT_S)
        for number in range(ROUNDS + 1):
            for name, server in servers.items():
                _, used_secret, used_ca = kinds[name]
                before_s = _worked_s(server)
                run = run_lookups((server.port,), questions, CONNECTIONS, seconds, used_secret, used_ca)
                assert run.wrong == 0, f"{run.wrong} answers were wrong"
                if number:  # the first round warms up
                    rates[name].append(run.per_second)
                    costs[name].append((_worked_s(server) - before_s) / len(run.milliseconds) * 1e6)
    for name in kinds:
        ratio, cost = (
            statistics.median(map(truediv, found[name], found["open"])) for found in (rates, costs)
        )
        print(
            f"{f'lookups, {name}, {CONNECTIONS} connections':<42}{statistics.median(rates[name]):>8,.0f} lookups/s  "
            f"{ratio:.1%} of open ({min(rates[name]):,.0f} to {max(rates[name]):,.0f})  "
            f"processor time {statistics.median(costs[name]):.1f} us, {cost:.1%}"
        )


def _worked_s(server: HttpServer) -> float:
    """Return the processor time of the server's workers so far."""
    return sum(sum(one.cpu_times()[:2]) for one in server.workers())


def _has_all(url: str, questions: list[tuple[str, str]], secret: str, context: ssl.SSLContext) -> bool:
    """Whether a node answers for each key of a sample by itself, and demands a key if there is one."""
    sample = questions[:: len(questions) // 100 or 1]
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    try:
        with httpx.Client(base_url=url, verify=context, trust_env=False) as client:
            answers = [
                client.get("/api/customers.getBalance", params={"customerId": customer}, headers=headers)
                for customer, _ in sample
            ]
            unknown = client.get("/api/status")
    except httpx.TransportError:
        return False
    return (
        all(answer.status_code == HTTPStatus.OK for answer in answers)
        and len({answer.headers["Foldlake-Node"] for answer in answers}) == 1
        and (unknown.status_code == HTTPStatus.UNAUTHORIZED) == bool(secret)
    )


def measure_hydration(settings: Settings, customers: int) -> None:
    """Read the whole changelog into an empty store, like a node that has lost its store."""
    with tempfile.TemporaryDirectory(dir=settings.home) as directory:
        store = load_backend(settings).open_writer(Path(directory), settings.topics.partitions)
        consumer = changelog_consumer(settings.kafka_connection, "benchmark")
        follower = ChangelogFollower(
            f"{READ_MODEL.name}.v1.changelog",
            store,
            consumer,
            SchemaRegistry(settings.registry.connection),
            release_grace_s=0,
            previously_ready={},
            on_change=lambda: None,
        )
        follower.set_target(frozenset(range(settings.topics.partitions)))
        began = time.perf_counter()
        while not (held := follower.partitions()) or not all(p.is_ready for p in held.values()):
            follower.run_once()
        took_s = time.perf_counter() - began
        assert store.record_count() == customers, "the store is not complete"
        consumer.close()
        store.close()
    print(
        f"{'changelog -> empty store':<34}{customers / took_s:,.0f} records/s ({customers:,} in {took_s:.1f} s)"
    )


def wait_until_ready(settings: Settings, customers: int) -> dict[int, int]:
    """Wait until both nodes are ready and own partitions; return partition -> port of its owner."""
    owners: dict[int, int] = {}

    def are_ready() -> bool:
        reports = [r for port in settings.query_ports for r in _reports(port)]
        owners.update({r.partition: int((r.owner or ":0").rpartition(":")[2]) for r in reports})
        positions = {r.partition: r.position or 0 for r in reports if r.is_ready}
        return set(owners.values()) == set(settings.query_ports) and sum(positions.values()) >= customers

    wait_until(are_ready, "both nodes are ready", READY_TIMEOUT_S, poll_s=0.2)
    return owners


def _reports(port: int) -> list[PartitionReport]:
    connection = NodeConnection(port)
    try:
        _, body = connection.get("/api/partitions")
        return [PartitionReport.from_json(fields) for fields in json.loads(body)]
    except (OSError, ValueError):
        return []
    finally:
        connection.close()


def measure_streams(questions: list[tuple[str, str]], owned: dict[int, int]) -> None:
    """Read all records from both nodes, as owners of their partitions: as one stream for each partition, and as pages of JSON."""
    replicas = [
        PartitionReplica("node", f"http://127.0.0.1:{port}", partition, OWNER)
        for partition, port in sorted(owned.items())
    ]
    keys = sorted(key for key, _ in questions)

    def streamed(replica: PartitionReplica) -> list[str]:
        batches = stream_records(replica, READ_MODEL.name, 1, NO_SAMPLING, READY_TIMEOUT_S)
        return [key for batch in batches for key in batch.column("key").to_pylist()]

    def listed(replica: PartitionReplica) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = httpx.get(
                replica.url + records_path(READ_MODEL.name),
                params={"partition": replica.partition, "limit": 1000, "cursor": cursor},
            ).json()
            found += [record["key"] for record in page["records"]]
            cursor = page["next"]
        return found

    # The first stream of a worker process imports what later ones have.
    for replica in replicas * 2:
        streamed(replica)
    for name, read in (("streams of partitions", streamed), ("pages of 1,000 in JSON", listed)):
        began = time.perf_counter()
        found = [key for replica in replicas for key in read(replica)]
        took_s = time.perf_counter() - began
        assert sorted(found) == keys, f"{name}: not every record once"
        print(
            f"{name + ', one after the other':<42}{len(found) / took_s:>8,.0f} records/s, complete",
            flush=True,
        )


def measure_lookups(
    settings: Settings, questions: list[tuple[str, str]], owned: dict[int, int], seconds: float
) -> None:
    """Look up keys owned by the node, any keys on both nodes, and keys owned by the other node."""
    first = settings.query_ports[0]
    of_first = {p for p, port in owned.items() if port == first}
    local = [q for q in questions if partition_of(q[0].encode(), settings.topics.partitions) in of_first]
    remote = [q for q in questions if partition_of(q[0].encode(), settings.topics.partitions) not in of_first]
    loads = (
        ("local, one node", (first,), local),
        ("any keys, two nodes", settings.query_ports, questions),
        ("every request proxied", (first,), remote),
    )
    for name, ports, balances in loads:
        run_lookups(ports, balances, CONNECTIONS, WARM_UP_S)
        run = run_lookups(ports, balances, CONNECTIONS, seconds)
        assert run.wrong == 0, f"{run.wrong} answers were wrong"
        print(_lookup_line(name, run), flush=True)


def _lookup_line(name: str, run: LookupRun) -> str:
    ordered = sorted(run.milliseconds)
    return (
        f"{name + f', {CONNECTIONS} connections':<42}{run.per_second:>8,.0f} lookups/s  "
        f"p50 {percentile(ordered, 0.5):.2f}  p99 {percentile(ordered, 0.99):.2f}  max {ordered[-1]:.1f} ms, exact"
    )


def measure_freshness(settings: Settings, writer: ChangelogWriter, owned: dict[int, int]) -> None:
    """Append a record, and look it up on its owner until it is served."""
    producer = low_latency_producer(settings.kafka_connection)
    connections = {port: NodeConnection(port) for port in owned.values()}
    milliseconds = []
    for number in range(1, FRESHNESS_PROBES + 1):
        customer = f"fresh-{number % 10}"
        connection = connections[owned[partition_of(customer.encode(), settings.topics.partitions)]]
        value = writer.value(customer, Decimal(number), number, number)
        expected = f'{{"amount":{number}.00}}'.encode()
        began = time.perf_counter()
        producer.produce(writer.topic, key=customer.encode(), value=value)
        while True:
            producer.poll(0)
            _, body = connection.get(f"/api/customers.getBalance?customerId={customer}")
            if body == expected:
                break
        milliseconds.append((time.perf_counter() - began) * 1000)
    producer.flush()
    for connection in connections.values():
        connection.close()
    print(latency_line("appended to changelog -> served", milliseconds))


if __name__ == "__main__":
    main()
