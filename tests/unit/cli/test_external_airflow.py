"""With an Airflow of one's own, no stream supervisor is started: `status` says so, and how to run one, until the home has one."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from include.files import file_lock
from include.settings import Settings
from include.stream.driver_configuration import Handover, HandoverReport, write_report
from stack.components.stream import missing_supervisor
from stack.foreground import select
from stack.launchers.stream_supervisor import lock_path

AIRFLOW = "http://airflow.example:8080"


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("FOLDLAKE_") and name != "FOLDLAKE_TOOLS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))


@pytest.mark.parametrize("url", ["", AIRFLOW])
def test_status_names_the_missing_supervisor(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_AIRFLOW_URL", url)

    text = " ".join(CliRunner().invoke(app, ["status"]).output.split())
    document = json.loads(CliRunner().invoke(app, ["status", "--json"]).output)

    assert ("FOLDLAKE_AIRFLOW_URL is set" in text) is bool(url)
    assert ("supervisor" in document["stream"]) is bool(url)


def test_status_names_a_rejected_change(tmp_path: Path) -> None:
    report = HandoverReport.now("of an up", Handover.FAILED, error="a fold has changed")
    write_report(tmp_path, report)

    text = " ".join(CliRunner().invoke(app, ["status"]).output.split())
    document = json.loads(CliRunner().invoke(app, ["status", "--json"]).output)

    assert "a fold has changed" in text
    assert document["rejectedChange"] == f"{report.at}: a fold has changed"


def test_a_supervisor_of_this_home_is_not_missing(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, airflow_url=AIRFLOW)
    assert missing_supervisor(settings)

    with file_lock(lock_path(tmp_path)):
        assert missing_supervisor(settings) == ""


def test_the_named_command_runs_the_supervisor(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, airflow_url=AIRFLOW)
    process = missing_supervisor(settings).split()[-1]

    (supervisor,) = select(settings, [process])

    assert supervisor.command[-1] == "stack.components.stream_process"


def test_in_a_container_the_status_is_that_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_AIRFLOW_URL", AIRFLOW)
    monkeypatch.setenv("FOLDLAKE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("FOLDLAKE_SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")

    result = CliRunner().invoke(app, ["status"])

    assert "docker compose ps" in result.output
    assert "The stack is not up" not in result.output
    assert result.exit_code == 1, "no stream runs"
