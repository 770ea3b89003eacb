"""Two nodes with TLS for callers, and mutual TLS between them: lookups, who is refused, and certificates that are renewed under load."""

import os
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from cryptography import x509

from demo.state_listing import list_states
from include.access.api_key import create_key
from include.access.caller import Scope
from include.access.key_topic import KeyTopic
from include.airflow.web import read_model_labels
from include.kafka.topics import admin_client
from include.nodes.certificates import create, renew
from include.nodes.local_nodes import local_node_urls, local_nodes
from include.nodes.node_url import PeerRule
from include.nodes.peer_tls import CA, JOBS, ClientTls, TlsFiles, certificate_path, client_tls, key_path
from include.nodes.peers import HOP_ANY, Peer, PeerDownError
from include.nodes.record_client import NodeClient
from include.nodes.record_requests import NO_SAMPLING
from include.nodes.record_stream import stream_records
from include.rebuild.hydration import reports
from include.settings import Settings
from stack.lifecycle import start
from stack.plan import KEEP, plan
from stack.supervision.supervisor import Supervisor
from tests.support.changelog_writer import ChangelogWriter
from tests.support.repetition import repeated
from tests.support.temporary_stack import first_of_free_ports, sharing_servers
from tests.support.waiting import wait_until

CUSTOMERS = 60
DEADLINE_S = 90.0
CALLERS_NAME = "nodes"


@dataclass
class SecuredNodes:
    """The nodes, what was written, and how callers reach them. headers: of each request."""

    settings: Settings
    callers_home: Path
    expected: dict[str, Decimal]
    headers: dict[str, str] = field(default_factory=dict)

    def client(self) -> httpx.Client:
        """Return a client that verifies the certificate of the nodes for callers."""
        context = ssl.create_default_context(cafile=str(certificate_path(self.callers_home, CA)))
        return httpx.Client(verify=context, trust_env=False, timeout=10.0, headers=self.headers)

    def wrong(self, answered_by: set[tuple[int, str]] | None = None) -> list[str]:
        """Look all customers up on each node, on kept connections; return what is not the written balance."""
        found = []
        with self.client() as client:
            for port in self.settings.query_ports:
                url = f"{self.settings.loopback_url(port)}/api/customers.getBalance"
                for customer, amount in self.expected.items():
                    answer = client.get(url, params={"customerId": customer})
                    if answer.text != f'{{"amount":{amount}}}':
                        found.append(f"{port} {customer}: {answer.status_code} {answer.text}")
                    elif answered_by is not None:
                        answered_by.add((port, answer.headers["Foldlake-Node"]))
        return found


@pytest.fixture(scope="module")
def nodes(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredNodes]:
    """Two nodes with the balances of some customers."""
    callers_home = tmp_path_factory.mktemp("callers")
    create(callers_home, {CALLERS_NAME: "127.0.0.1"})
    values = {
        "auth": "keys",
        "node_peer_port": first_of_free_ports(2),
        "tls_cert_file": certificate_path(callers_home, CALLERS_NAME),
        "tls_key_file": key_path(callers_home, CALLERS_NAME),
    }
    with sharing_servers(servers, keep_home, **values) as settings:
        key, secret = create_key("lookups", frozenset({Scope.READ}))
        KeyTopic(settings.kafka_connection, 1).change(lambda _: [key])
        start(settings, ("query_nodes",))
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        expected = {
            f"customer {number}": Decimal(number) / 100 + Decimal("5.00") for number in range(CUSTOMERS)
        }
        for customer, amount in expected.items():
            writer.write(customer, amount)
        writer.flush()
        found = SecuredNodes(settings, callers_home, expected, {"Authorization": f"Bearer {secret}"})
        wait_until(lambda: not found.wrong(), "all balances are exact", DEADLINE_S)
        yield found


def status(url: str, files: TlsFiles) -> int:
    with closing(Peer(url, tls=ClientTls(files))) as peer:
        return peer.get("/healthz", HOP_ANY, 5.0).status


def is_served(url: str, files: TlsFiles) -> bool:
    try:
        return status(url, files) == 200
    except PeerDownError:
        return False


def serial(url: str, tls: ClientTls) -> int:
    """Return the serial number of the certificate that a server has now."""
    address = urlsplit(url)
    with (
        create_connection((address.hostname, address.port), 10) as plain,
        tls.context().wrap_socket(plain, server_hostname=address.hostname) as connection,
    ):
        return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"").serial_number


def test_each_node_answers_with_records_of_the_other(nodes: SecuredNodes) -> None:
    answered_by: set[tuple[int, str]] = set()

    assert nodes.wrong(answered_by) == []

    assert answered_by == {
        (port, node) for port in nodes.settings.query_ports for node in ("node-1", "node-2")
    }


def test_the_metrics_for_callers_count_what_a_node_answers_for_the_other_one(nodes: SecuredNodes) -> None:
    asked, other = nodes.settings.query_ports

    def counted(client: httpx.Client) -> float:
        page = client.get(f"{nodes.settings.loopback_url(other)}/metrics").text
        (line,) = (one for one in page.splitlines() if one.startswith("foldlake_lookup_seconds_count"))
        return float(line.split()[1])

    with nodes.client() as client:
        before = counted(client)
        url = f"{nodes.settings.loopback_url(asked)}/api/customers.getBalance"
        answered = [client.get(url, params={"customerId": customer}) for customer in nodes.expected]
        by_other = sum(answer.headers["Foldlake-Node"] == "node-2" for answer in answered)

        assert by_other > 0
        assert counted(client) == before + by_other


def test_jobs_read_the_records_of_both_nodes(nodes: SecuredNodes) -> None:
    settings = nodes.settings
    rule = PeerRule.of_client(settings)
    client = NodeClient(settings.kafka_connection, rule, "balance", 1, "balance")
    try:
        found = client.replicas(DEADLINE_S)
        assert found.are_complete, found
        assert {replica.url for replica in found.ready} == set(local_node_urls(settings))
        batches = (
            batch
            for replica in found.ready
            for batch in stream_records(replica, "balance", 1, NO_SAMPLING, DEADLINE_S, client.tls)
        )
        assert sum(len(batch) for batch in batches) == 2 * CUSTOMERS
    finally:
        client.close()
    reported = reports(admin_client(settings.kafka_connection), rule)
    assert all(reported.values()), reported


def test_demos_and_forms_of_airflow_need_no_key(nodes: SecuredNodes) -> None:
    settings = nodes.settings

    for node in local_nodes(settings):
        listed = list_states(node, "balance", page=7) or {}
        assert {key: Decimal(str(state["amount"])) for key, state in listed.items()} == nodes.expected
    assert read_model_labels(settings, ["balance"]) == {"balance": "balance (v1 live)"}


def test_nobody_uses_the_listener_for_nodes_without_a_certificate_of_its_ca(nodes: SecuredNodes) -> None:
    own, home = client_tls(nodes.settings).files, nodes.callers_home
    foreign = TlsFiles(own.ca, certificate_path(home, JOBS), key_path(home, JOBS))
    for url in local_node_urls(nodes.settings):
        with pytest.raises(PeerDownError):
            status(url, TlsFiles(own.ca))
        with pytest.raises(PeerDownError):
            status(url, foreign)
        assert status(url, own) == 200


def test_nothing_changes_at_the_next_start(nodes: SecuredNodes) -> None:
    assert {planned.action for planned in plan(nodes.settings, ["query_nodes"])} == {KEEP}
    names = {f"node-{number}-{part}" for number in (1, 2) for part in ("http", "peers", "materializer")}
    assert names <= Supervisor(nodes.settings).states().keys()


def test_a_killed_worker_of_the_listener_for_nodes_costs_no_lookup(nodes: SecuredNodes) -> None:
    settings, failures, rounds = nodes.settings, list[str](), 0
    holder = psutil.Process(Supervisor(settings).states()["node-2-peers"].pid)
    url = local_node_urls(settings)[1]

    def worker() -> int | None:
        lines = {
            one.pid: one.cmdline() for one in holder.children(recursive=True) if one.status() != "zombie"
        }
        return next((pid for pid, line in lines.items() if "worker" in " ".join(line)), None)

    def look_up() -> None:
        nonlocal rounds
        failures.extend(nodes.wrong())
        rounds += 1

    killed = worker()
    assert killed is not None
    with repeated(look_up):
        wait_until(lambda: rounds > 1, "lookups go on", DEADLINE_S)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: worker() not in {None, killed}, "there is another worker", DEADLINE_S)
        wait_until(lambda: is_served(url, client_tls(settings).files), "it answers", DEADLINE_S)
        done = rounds
        wait_until(lambda: rounds > done + 1, "lookups go on", DEADLINE_S)

    assert failures == []


def test_certificates_are_renewed_without_a_failed_lookup(nodes: SecuredNodes) -> None:
    settings, failures = nodes.settings, list[str]()
    tls_of_callers = ClientTls(TlsFiles(certificate_path(nodes.callers_home, CA)))
    listeners = {
        **dict.fromkeys(map(settings.loopback_url, settings.query_ports), tls_of_callers),
        **dict.fromkeys(local_node_urls(settings), client_tls(settings)),
    }
    rounds = 0

    def look_up() -> None:
        nonlocal rounds
        try:
            failures.extend(nodes.wrong())
        except httpx.HTTPError as error:
            failures.append(repr(error))
        rounds += 1

    def serials() -> dict[str, int]:
        return {url: serial(url, tls) for url, tls in listeners.items()}

    before = serials()
    holders = {name: state.pid for name, state in Supervisor(settings).states().items()}
    with repeated(look_up):
        renew(settings.home)
        renew(nodes.callers_home)
        wait_until(
            lambda: all(number != before[url] for url, number in serials().items()),
            "every listener has its new certificate",
            DEADLINE_S,
        )
        done = rounds
        wait_until(lambda: rounds > done + 3, "lookups went on", DEADLINE_S)

    assert failures == []
    assert {name: state.pid for name, state in Supervisor(settings).states().items()} == holders
