"""The Helm chart: everything that can be checked without Helm."""

import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from include.settings import CHECKOUT, PREFIX, VARIABLES, Settings
from include.settings.variables import RENAMED
from stack.lifecycle import component_modules

CHART = CHECKOUT / "deploy" / "helm" / "foldlake"
TEMPLATES = sorted((CHART / "templates").rglob("*.yaml"))
CI = sorted((CHART / "ci").iterdir())
# A limit of memory in docker-compose.yaml -> the chart's containers with the same process.
MEMORY = {
    "QUERY_NODE_MEMORY": ("nodes", "resources"),
    "STREAM_MEMORY": ("stream", "resources"),
    "AIRFLOW_API_SERVER_MEMORY": ("airflow", "apiServer", "resources"),
    "AIRFLOW_SCHEDULER_MEMORY": ("airflow", "scheduler", "resources"),
    "AIRFLOW_DAG_PROCESSOR_MEMORY": ("airflow", "dagProcessor", "resources"),
    "AIRFLOW_TRIGGERER_MEMORY": ("airflow", "triggerer", "resources"),
}
BYTES = {"m": 2**20, "g": 2**30, "Mi": 2**20, "Gi": 2**30}


def loaded(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    return loaded(CHART / "values.yaml")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return document


def at(values: dict[str, Any], *keys: str) -> Any:  # noqa: ANN401 - of any type
    for key in keys:
        values = values[key]
    return values


def size(text: str) -> int:
    """Return the bytes of `5g`, as Docker writes it, or of `5Gi`, as Kubernetes does."""
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]  # fails the test
    return int(number) * BYTES[unit]


def test_its_version_is_that_of_foldlake() -> None:
    chart = loaded(CHART / "Chart.yaml")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert chart["appVersion"] == project["version"]


@pytest.mark.parametrize("path", [CHART / "values.yaml", *CI], ids=lambda path: path.name)
def test_values_fit_the_schema(path: Path, schema: dict[str, Any]) -> None:
    assert [error.message for error in Draft7Validator(schema).iter_errors(loaded(path))] == []


def test_the_schema_has_every_value_and_no_other(values: dict[str, Any], schema: dict[str, Any]) -> None:
    def check(default: object, described: dict[str, Any], path: str) -> Iterator[str]:
        if "properties" in described and described.get("additionalProperties") is False:
            assert isinstance(default, dict)
            yield from (f"{path}.{name}" for name in default.keys() ^ described["properties"].keys())
            for name in default.keys() & described["properties"].keys():
                yield from check(default[name], described["properties"][name], f"{path}.{name}")

    # Helm adds `global` itself.
    assert set(check(values, schema, "")) == {".global"}


def test_templates_name_existing_values(values: dict[str, Any]) -> None:
    texts = [path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()]
    named = {name for text in texts for name in re.findall(r"\.Values\.([\w.]+)", text)}

    assert len(named) > 20
    for name in named:
        at(values, *name.split("."))


def test_every_setting_is_accepted_or_refused_with_a_reason() -> None:
    known = loaded(CHART / "files" / "settings.yaml")
    accepted, refused = set(known["accepted"]), set(known["refused"])

    assert accepted | refused == {f"{PREFIX}{name.upper()}" for name in VARIABLES}
    assert accepted & refused == set()
    assert all(known["refused"].values())
    assert known["renamed"] == {
        f"{PREFIX}{old.upper()}": f"{PREFIX}{new.upper()}" for old, new in RENAMED.items()
    }


def test_every_variable_is_a_setting() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in VARIABLES}
    named = {
        name.removesuffix("_")
        for path in (CHART / "templates").rglob("*.*")
        for name in re.findall(rf"{PREFIX}[A-Z_]+", path.read_text(encoding="utf-8"))
    }

    # The prefix of Airflow's settings.
    assert named - known == {f"{PREFIX}AIRFLOW"}


def test_the_image_runs_every_argument() -> None:
    modules = component_modules()
    names = set(modules) | {p.name for module in modules.values() for p in module.processes(Settings.of())}
    found = {
        argument
        for path in TEMPLATES
        for arguments in re.findall(r"args: \[([^\]{]+)\]", path.read_text(encoding="utf-8"))
        for argument in arguments.split(", ")
    }

    assert found == {"--only-prepare", "airflow", "query_nodes", "stream-supervisor", "airflow-api-server"}
    assert found - names == {"--only-prepare"}


def test_every_probe_has_a_path_that_exists() -> None:
    used = {
        path
        for template in TEMPLATES
        for path in re.findall(r"httpGet: \{path: (\S+),", template.read_text(encoding="utf-8"))
    }
    node = (CHECKOUT / "query_api" / "http" / "health_routes.py").read_text(encoding="utf-8")
    airflow = importlib.util.find_spec("airflow")
    assert airflow is not None
    assert airflow.origin is not None
    routes = Path(airflow.origin).parent / "api_fastapi" / "core_api" / "routes" / "public"

    assert used == {"/healthz", "/readyz", "/api/v2/version", "/api/v2/monitor/health"}
    assert {path for path in ("/healthz", "/readyz") if f'@blueprint.get("{path}")' not in node} == set()
    assert 'prefix="/version"' in (routes / "version.py").read_text(encoding="utf-8")
    assert 'prefix="/monitor"' in (routes / "monitor.py").read_text(encoding="utf-8")


def test_limits_of_memory_are_those_of_the_compose_file(values: dict[str, Any]) -> None:
    text = (CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8")
    compose = dict(re.findall(r"mem_limit: \$\{(\w+):-(\w+)\}", text))

    assert {name: size(compose[name]) for name in MEMORY} == {
        name: size(at(values, *keys, "limits", "memory")) for name, keys in MEMORY.items()
    }


def test_processes_have_as_long_to_end_as_in_the_compose_file(values: dict[str, Any]) -> None:
    compose = loaded(CHECKOUT / "docker-compose.yaml")

    for part, extension in (("nodes", "x-query-node"), ("writer", "x-airflow")):
        assert compose[extension]["stop_grace_period"] == f"{values[part]['terminationGracePeriodSeconds']}s"


def test_no_default_is_a_password(values: dict[str, Any]) -> None:
    assert values["secrets"] == {"existingSecret": "", "keys": {}}
    assert values["settings"] == {}
