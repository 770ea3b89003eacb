"""What docs/docker.md, upgrade.md and backup.md promise of a running project. The tests build on one another, and on those of the project."""

import itertools
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from include.settings import Settings
from stack.tools import Tools
from tests.support.compose.balances import CUSTOMER, add_funds, balance
from tests.support.compose.engine import DockerError
from tests.support.compose.project import NAME, Project
from tests.support.compose.standins import provide
from tests.support.http.local_http import HTTP
from tests.support.repetition import repeated
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.compose, pytest.mark.timeout(3600)]

RECOVERY_S = 180.0
# The driver waits for its executors, whose JVMs are cold.
CLUSTER_S = 300.0
LOOKUP_PAUSE_S = 0.1
# What docs/how-to/backup.md backs up.
VOLUMES = ("kafka-data", "postgres-data", "secrets")


@pytest.mark.parametrize(
    "service", ["stream-supervisor", "query-node-1", "kafka", "registry", "airflow-scheduler"]
)
def test_a_killed_container_comes_back(project: Project, service: str) -> None:
    before = balance(project, 2)
    started_s = time.monotonic()
    project.kill(service)

    wait_until(lambda: project.unhealthy() != [], "it is missed", 60.0, 0.5)
    project.wait_until_healthy(RECOVERY_S)
    add_funds(project, "1.00")

    log.info("%s: next event folded %.0f s after the kill", service, time.monotonic() - started_s)
    assert balance(project, 2) == before + 1


def failure(project: Project, number: int) -> str:
    """Return why a node does not answer a lookup; empty if it does."""
    try:
        balance(project, number)
    except httpx.HTTPError as error:
        return repr(error)
    return ""


def test_nodes_are_replaced_one_after_the_other(project: Project) -> None:
    """An earlier test has built their image again, with changed code."""
    ids = {project.container(f"query-node-{number}") for number in (1, 2)}
    failed: list[str] = []
    numbers = itertools.cycle((1, 2))

    def look_up() -> None:
        first = next(numbers)
        errors = [error for number in (first, 3 - first) if (error := failure(project, number))]
        if len(errors) > 1:
            failed.append("; ".join(errors))

    with repeated(look_up, LOOKUP_PAUSE_S):
        for number in (1, 2):
            project.compose("up", "--wait", "--no-deps", f"query-node-{number}")
        project.up()

    assert failed == []
    assert ids.isdisjoint(project.container(f"query-node-{number}") for number in (1, 2))


@pytest.mark.usefixtures("profile_images")
def test_prometheus_scrapes_both_nodes_and_has_the_alerts(project: Project) -> None:
    assert project.key
    project.compose("up", "--wait", "prometheus")
    url = f"http://127.0.0.1:{project.ports['PROMETHEUS_PORT']}/api/v1"

    def targets() -> Counter[tuple[str, str]]:
        found = HTTP.get(f"{url}/targets").json()["data"]["activeTargets"]
        return Counter((target["labels"]["job"], target["health"]) for target in found)

    jobs = ("foldlake-nodes", "foldlake-stream", "foldlake-status")
    wait_until(lambda: targets() == {(job, "up"): 2 for job in jobs}, "every page is scraped", RECOVERY_S)
    groups = HTTP.get(f"{url}/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    wanted = yaml.safe_load((project.folder / "deploy" / "monitoring" / "foldlake.rules.yaml").read_text())
    assert {rule["name"] for rule in rules} == {
        rule.get("alert") or rule.get("record") for group in wanted["groups"] for rule in group["rules"]
    }
    wait_until(lambda: all_evaluated(url), "every rule is evaluated without an error", RECOVERY_S)


def all_evaluated(url: str) -> bool:
    groups = HTTP.get(f"{url}/rules").json()["data"]["groups"]
    return {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}


@pytest.mark.usefixtures("profile_images")
def test_a_read_model_is_served_from_redis(project: Project) -> None:
    before = balance(project, 1)
    with extra_settings(project, "FOLDLAKE_PLACEMENTS=balance=redis"):
        project.up(profile="redis")
        wait_until(lambda: balance(project, 1) == balance(project, 2) == before, "Redis has it", RECOVERY_S)
        keys = project.compose("exec", "--no-TTY", "redis", "valkey-cli", "dbsize")
        assert int(keys.split()[-1]) > 0
    project.up()
    project.compose("--profile", "redis", "rm", "--stop", "--force", "redis")


def test_the_stream_folds_on_a_spark_cluster(project: Project) -> None:
    before = balance(project, 1)
    master = "FOLDLAKE_STREAM_MASTER=spark://spark-master:7077\nFOLDLAKE_STREAM_DRIVER_HOST=stream-supervisor"
    with extra_settings(project, master):
        project.up(profile="spark")
        add_funds(project, "1.00", CLUSTER_S)
        assert balance(project, 2) == before + 1
        assert "Registered app" in project.compose("logs", "spark-master")
    project.up()
    add_funds(project, "1.00")
    project.compose("--profile", "spark", "rm", "--stop", "--force", "spark-master", "spark-worker")


@pytest.fixture
def profile_images(project: Project) -> None:
    """Provide the images of the profiles that can have stand-ins."""
    compose = yaml.safe_load((project.folder / "docker-compose.yaml").read_text(encoding="utf-8"))
    images = [compose["services"][name]["image"] for name in ("prometheus", "redis")]
    provide(project.engine, images, Tools(Settings.of().tools))


@contextmanager
def extra_settings(project: Project, lines: str) -> Iterator[None]:
    """Add lines to `.env` during the block."""
    environment = project.folder / ".env"
    text = environment.read_text(encoding="utf-8")
    environment.write_text(f"{text}{lines}\n", encoding="utf-8")
    try:
        yield
    finally:
        environment.write_text(text, encoding="utf-8")


def test_down_keeps_the_data(project: Project) -> None:
    before = balance(project, 1)
    project.compose("down")

    log.info("up --wait: %.0f s", project.up())

    assert balance(project, 1) == balance(project, 2) == before
    add_funds(project, "1.00")
    assert balance(project, 1) == before + 1


def test_a_backup_is_restored_after_everything_is_lost(project: Project, tmp_path: Path) -> None:
    before = balance(project, 1)
    archive = ("--file", "/target/backup.tar.gz", "--directory", "/backup")
    project.compose("down")
    tar(project, tmp_path, "--create", "--gzip", *archive, *VOLUMES)

    project.compose("down", "--volumes")
    assert project.leftovers() == []

    project.compose("up", "--no-start")
    tar(project, tmp_path, "--extract", "--numeric-owner", "--gzip", *archive)
    log.info("up --wait after a restore: %.0f s", project.up())
    wait_until(
        lambda: balance(project, 1) == balance(project, 2) == before, "the balance is restored", RECOVERY_S
    )
    add_funds(project, "1.00")
    assert balance(project, 1, CUSTOMER) == before + 1


def tar(project: Project, target: Path, *arguments: str) -> None:
    """Run tar in a container with the volumes of a backup."""
    mounts = [option for name in VOLUMES for option in ("--volume", f"{NAME}_{name}:/backup/{name}")]
    project.engine.docker(
        *("run", "--rm", "--user", "0", "--entrypoint", "tar", *mounts, "--volume", f"{target}:/target"),
        *("foldlake:local", *arguments),
    )


def test_a_setting_that_is_wrong_ends_up_with_its_reason(project: Project) -> None:
    project.compose("down", "--volumes")

    with extra_settings(project, "FOLDLAKE_SYSTEMS=shoes"), pytest.raises(DockerError):
        project.up()

    assert "FOLDLAKE_SYSTEMS" in project.compose("logs", "airflow-init")
