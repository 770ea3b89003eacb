"""The nodes of docker-compose.yaml as processes of this machine, without an engine: their certificates, keys, and TLS for callers."""

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from include.airflow.web import read_model_labels
from include.kafka.topics import admin_client
from include.nodes.certificates import create
from include.nodes.node_url import PeerRule
from include.nodes.peer_tls import certificate_path, key_path
from include.process import die_with_parent
from include.rebuild.hydration import reports
from include.settings import CHECKOUT, PREFIX, Settings
from tests.support.changelog_writer import ChangelogWriter
from tests.support.compose.compose_file import compose_services, on_this_machine, process_environment
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

# Of loopback, so that both nodes have the ports of the containers; others for each run, so that runs do not meet.
NETWORK = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
ADDRESSES = {"query-node-1": f"{NETWORK}.11", "query-node-2": f"{NETWORK}.12"}
CUSTOMERS = 40
DEADLINE_S = 120.0
# As in docs/docker.md.
CALLERS = {
    "FOLDLAKE_TLS_CERT_FILE": "/run/foldlake-callers/nodes.pem",
    "FOLDLAKE_TLS_KEY_FILE": "/run/foldlake-callers/nodes-key.pem",
}
SERVICES = compose_services(CALLERS)


@dataclass
class Containers:
    """The processes. replaced: what the texts of the containers are on this machine."""

    folder: Path
    replaced: dict[str, str]

    def environment(self, service: str) -> dict[str, str]:
        """Return the environment of a service's process."""
        home = str(self.folder / "homes" / service)
        bind = {"0.0.0.0": ADDRESSES.get(service, ""), "localhost": ADDRESSES.get(service, "")}
        return process_environment(
            SERVICES[service], CALLERS, {**self.replaced, "/var/lib/foldlake": home, **bind}
        )

    def run(self, service: str, *command: str) -> str:
        """Run a command in the environment of a service, and return what it prints."""
        environment = self.environment(service)
        words = [on_this_machine(word, self.replaced) for word in command]
        done = subprocess.run(
            words,
            env=environment,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def settings(self, service: str) -> Settings:
        """Return the settings of a service's process."""
        values = self.environment(service)
        names = {name: value for name, value in values.items() if name.startswith(PREFIX)}
        return Settings.of(
            **{
                name.removeprefix(PREFIX).lower(): value
                for name, value in names.items()
                if not name.endswith("PASSWORD_FILE")
            }
        )

    def health(self, service: str) -> bool:
        """Whether the health check of a service succeeds."""
        _, *command = SERVICES[service]["healthcheck"]["test"]
        words = [word.replace("localhost", ADDRESSES[service]) for word in command]
        return subprocess.run(words, env=self.environment(service), check=False).returncode == 0


@pytest.fixture(scope="module")
def containers(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Containers]:
    """Both nodes, ready, with the balances of some customers."""
    folder = tmp_path_factory.mktemp("containers")
    with sharing_servers(servers, keep_home) as settings, ExitStack() as running:
        replaced = {
            "/opt/foldlake-tools": str(settings.tools),
            "/opt/foldlake": str(CHECKOUT),
            "/run/": f"{folder}/run/",
            "kafka:29092": servers.kafka.bootstrap_servers,
            "http://registry:8080/apis/ccompat/v7": servers.registry.url,
            **ADDRESSES,
        }
        found = Containers(folder, replaced)
        for name in ("foldlake", "foldlake-authority", "foldlake-peers", "foldlake-callers"):
            (folder / "run" / name).mkdir(parents=True)
        create(folder, {"nodes": "nodes.example"})
        for path in (certificate_path(folder, "nodes"), key_path(folder, "nodes")):
            path.rename(folder / "run" / "foldlake-callers" / path.name)
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        for number in range(CUSTOMERS):
            writer.write(f"customer-{number}", Decimal("5.00") + number)
        writer.flush()
        found.run("generate-secrets", *SERVICES["generate-secrets"]["entrypoint"])
        for service in ADDRESSES:
            running.enter_context(_foreground(found, service))
        wait_until(lambda: all(map(found.health, ADDRESSES)), "both nodes are healthy", DEADLINE_S)
        yield found


@contextmanager
def _foreground(containers: Containers, service: str) -> Iterator[None]:
    """Run the process of a service for the duration of the block."""
    command = [sys.executable, "-m", "stack.foreground", *SERVICES[service]["command"]]
    with (containers.folder / f"{service}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env={**containers.environment(service), "PYTHONPATH": str(CHECKOUT)},
            cwd=CHECKOUT,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - only a system call
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def test_callers_use_tls_and_a_key(containers: Containers) -> None:
    key = containers.run(
        "stream-supervisor", sys.executable, "-m", "cli", "keys", "create", "--name", "operator"
    ).strip()
    context = ssl.create_default_context(cafile=str(certificate_path(containers.folder, "ca")))
    # The certificate is for the host of a proxy.
    context.check_hostname = False
    answered_by = set()
    for address, port in zip(ADDRESSES.values(), (5051, 5052), strict=True):
        with httpx.Client(base_url=f"https://{address}:{port}", verify=context, trust_env=False) as client:
            assert client.get("/api/status").status_code == 401
            client.headers["Authorization"] = f"Bearer {key}"
            wait_until(lambda client=client: client.get("/api/status").status_code == 200, "the key is known")  # type: ignore[misc]
            for number in range(CUSTOMERS):
                answer = client.get("/api/customers.getBalance", params={"customerId": f"customer-{number}"})
                assert answer.json() == {"amount": 5.0 + number}
                answered_by.add((port, answer.headers["Foldlake-Node"]))

    assert answered_by == {(port, node) for port in (5051, 5052) for node in ("node-1", "node-2")}


def test_forms_of_airflow_have_the_versions(containers: Containers) -> None:
    settings = containers.settings("airflow-dag-processor")

    assert read_model_labels(settings, ["balance"]) == {"balance": "balance (v1 live)"}


def test_jobs_reach_both_nodes_with_their_certificate(containers: Containers) -> None:
    settings = containers.settings("airflow-scheduler")
    found = reports(admin_client(settings.kafka_connection), PeerRule.of_client(settings))

    assert {url: bool(one) for url, one in found.items()} == {
        f"https://{address}:5151": True for address in ADDRESSES.values()
    }


def test_a_second_up_changes_no_certificate_and_no_node_has_the_key_of_the_ca(containers: Containers) -> None:
    def files() -> dict[str, int]:
        peers, jobs = (
            containers.folder / "run" / "foldlake-peers",
            containers.folder / "run" / "foldlake" / "tls",
        )
        return {path.name: path.stat().st_mtime_ns for folder in (peers, jobs) for path in folder.iterdir()}

    before = files()
    containers.run("generate-secrets", *SERVICES["generate-secrets"]["entrypoint"])

    assert files() == before
    assert "ca.pem" in before
    assert "ca-key.pem" not in before
