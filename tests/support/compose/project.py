"""A project of docker-compose.yaml in a copy of the checkout, on free ports of the loopback interface."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from include.settings import CHECKOUT
from tests.support.compose.engine import DockerError, Engine
from tests.support.http.local_http import http_client
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

NAME = "foldlake-test"
# A copy of the balance, in a folder of the host.
OWN_MODEL = "savings"
PORTS = (
    "FOLDLAKE_KAFKA_PORT",
    "FOLDLAKE_REGISTRY_PORT",
    "FOLDLAKE_AIRFLOW_PORT",
    "FOLDLAKE_REDIS_PORT",
    "PROMETHEUS_PORT",
    "QUERY_NODE_1_PORT",
    "QUERY_NODE_2_PORT",
)
BUILD_TIMEOUT_S = 2400.0
UP_TIMEOUT_S = 900.0
COMMAND_TIMEOUT_S = 900.0
NOT_COPIED = (".git", ".foldlake", ".env", "__pycache__", ".*_cache")


@dataclass(frozen=True)
class Project:
    """A project; ports: those published on the host, by variable."""

    engine: Engine
    folder: Path
    ports: Mapping[str, int]

    def compose(self, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run a command of `docker compose`, and return what it prints."""
        return self.engine.docker(
            "compose", "--project-name", NAME, *arguments, timeout_s=timeout_s, cwd=self.folder
        )

    def up(self, *, build: bool = False, profile: str = "") -> float:
        """Start everything, with the services of a profile, return when it is healthy; returns the seconds that it took."""
        started_s = time.monotonic()
        options = ("--build",) if build else ()
        profiles = ("--profile", profile) if profile else ()
        try:
            self.compose(
                *profiles,
                "up",
                *options,
                "--wait",
                "--quiet-pull",
                timeout_s=BUILD_TIMEOUT_S if build else UP_TIMEOUT_S,
            )
        except DockerError as error:
            logs = self.compose("logs", "--no-color", "--tail", "20", *map(service_of, self.unhealthy()))
            raise DockerError(f"{self.unhealthy()}\n{logs}") from error
        return time.monotonic() - started_s

    def build(self, service: str) -> str:
        """Build the image of a service, and return the steps with what was cached."""
        command = ("compose", "--project-name", NAME, "--progress", "plain", "build", service)
        built = self.engine.attempt(*command, timeout_s=BUILD_TIMEOUT_S, cwd=self.folder)
        assert built.returncode == 0, built.stderr
        return built.stdout + built.stderr

    def foldlake(self, *arguments: str, service: str = "stream-supervisor") -> str:
        """Run a command of `./foldlake` in a container, and return what it prints."""
        return self.compose("exec", "--no-TTY", service, "./foldlake", *arguments)

    def node(self, number: int) -> httpx.Client:
        """Return a client of a node's API, with an API key."""
        client = http_client(timeout_s=60.0)
        client.headers["Authorization"] = f"Bearer {self.key}"
        client.base_url = httpx.URL(f"http://127.0.0.1:{self.ports[f'QUERY_NODE_{number}_PORT']}")
        return client

    @cached_property
    def key(self) -> str:
        """The secret of an API key, created as docs/docker.md describes; also in the file that Prometheus gets."""
        secret = self.foldlake("keys", "create", "--name", "tests", "--scopes", "read,write").strip()
        file = self.folder / "prometheus.key"
        file.write_text(secret, encoding="utf-8")
        # Prometheus runs as another user than the tests.
        file.chmod(0o644)
        return secret

    def airflow_password(self) -> str:
        """Return the generated password of Airflow's user admin."""
        path = "/var/lib/foldlake/airflow/passwords.json"
        found = json.loads(self.compose("exec", "--no-TTY", "airflow-api-server", "cat", path))
        return str(found["admin"])

    def container(self, service: str) -> str:
        """Return the id of a service's only container."""
        return self.compose("ps", "--quiet", service)

    def kill(self, service: str) -> None:
        """Kill the main process of a container with -9, as the kernel does without memory; `docker kill` would count as a stop by hand."""
        pid = self.engine.docker("inspect", "--format", "{{.State.Pid}}", self.container(service))
        os.kill(int(pid), signal.SIGKILL)

    def unhealthy(self) -> list[str]:
        """Return the services that are not healthy, with their states; one that ends has to end with success."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        found: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [
            f"{one['Service']}: {one['Status']}"
            for one in found
            if one["Health"] != "healthy" and not (one["State"] == "exited" and one["ExitCode"] == 0)
        ]

    def wait_until_healthy(self, timeout_s: float) -> None:
        """Wait until every service is healthy."""
        wait_until(lambda: not self.unhealthy(), "every service is healthy", timeout_s)

    def leftovers(self) -> list[str]:
        """Return the containers, volumes and networks of the project."""
        label = f"label=com.docker.compose.project={NAME}"
        kinds = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
        return [
            line for kind in kinds for line in self.engine.docker(*kind, "--quiet", "--filter", label).split()
        ]


def service_of(line: str) -> str:
    """Return the service of a line of `unhealthy`."""
    return line.partition(":")[0]


@contextmanager
def temporary_project(engine: Engine, folder: Path, settings: Mapping[str, str]) -> Iterator[Project]:
    """Copy the checkout, write these settings to its `.env`, and remove every container and volume after the block."""
    copy = folder / "foldlake"
    shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    lines = [f"{name}={value}" for name, value in {**ports, **settings}.items()]
    (copy / ".env").write_text("\n".join(lines) + "\n", encoding="utf-8")
    project = Project(engine, copy, ports)
    down = ("down", "--volumes", "--remove-orphans", "--timeout", "5")
    project.compose(*down)
    try:
        yield project
    finally:
        project.compose(*down)
