"""Secrets of the settings are in one private file, and not in the generated definitions of the processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import WRITTEN_SETTINGS, Settings
from stack.components import airflow
from stack.lifecycle import all_processes
from stack.supervision import exec_process
from stack.supervision.configuration import (
    SECRET_VARIABLES,
    configuration_path,
    secrets_path,
    write_configuration,
)
from stack.supervision.process import Process
from tests.support.written_descriptions import written_descriptions

SECRETS = {
    "airflow_password": "correct horse",
    "airflow_database_url": "postgresql+psycopg2://airflow:battery@db.example/airflow",
    "alert_webhook_url": "http://chat.example/hook/staple",
    "redis_url": "rediss://:clip@cache.example:6379/0",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path / "home", **SECRETS)


def descriptions(settings: Settings) -> dict[str, Path]:
    return written_descriptions(settings, all_processes(settings))


def test_no_generated_file_but_one_contains_a_secret(settings: Settings) -> None:
    descriptions(settings)
    airflow.update(settings, print)

    files = [path for path in settings.home.rglob("*") if path.is_file() and not path.is_symlink()]
    found = {
        path.relative_to(settings.home)
        for path in files
        for secret in SECRETS.values()
        if secret in path.read_text()
    }

    assert len(files) > 10
    assert found == {Path("run/secrets.json")}
    assert secrets_path(settings.home).stat().st_mode & 0o777 == 0o600
    assert "secrets.json" in configuration_path(settings.home).read_text()


def test_a_changed_secret_changes_the_processes_that_have_it(settings: Settings) -> None:
    before = descriptions(settings)
    again = descriptions(settings)
    after = descriptions(settings.changed(alert_webhook_url="http://chat.example/hook/other"))

    assert before == again
    assert after.keys() == before.keys()
    assert after["airflow-scheduler"] != before["airflow-scheduler"]
    assert after["kafka"] == before["kafka"]


def test_a_process_is_started_with_its_secrets(settings: Settings) -> None:
    shows = Process(
        "shows", ("/usr/bin/env",), 1, bool, environment={"URL": f"{SECRETS['airflow_database_url']}?x=1"}
    )
    write_configuration(settings, [shows])
    (description,) = (settings.home / "run" / "processes").glob("shows-*.json")

    done = subprocess.run(
        [sys.executable, "-I", "-S", exec_process.__file__, description, secrets_path(settings.home)],
        capture_output=True,
        text=True,
        check=True,
    )

    environment = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    assert environment["URL"] == f"{SECRETS['airflow_database_url']}?x=1"
    assert environment["FOLDLAKE_ALERT_WEBHOOK_URL"] == SECRETS["alert_webhook_url"]
    assert environment["FOLDLAKE_NODE_NAME"] == "node-1"


def test_tasks_of_airflow_have_the_settings_of_a_secured_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The password is a part of another setting's value.
    settings = Settings.of(
        home=tmp_path / "home",
        kafka_bootstrap="kafka:9093",
        kafka_security_protocol="SASL_SSL",
        kafka_sasl_mechanism="PLAIN",
        kafka_sasl_username="foldlake",
        kafka_sasl_password="kafka",  # noqa: S106 - of no server
        schema_registry_url="https://me:hidden@registry.example",
    )
    descriptions(settings)
    airflow.update(settings, print)
    written = airflow.settings_file(settings.home)
    environments = json.loads(secrets_path(settings.home).read_text())["environments"]
    secrets = {
        name: value for name, value in environments["airflow-scheduler"].items() if name in SECRET_VARIABLES
    }

    for name, value in {**secrets, WRITTEN_SETTINGS: str(written)}.items():
        monkeypatch.setenv(name, value)

    assert "PASSWORD" not in written.read_text()
    assert "hidden" not in written.read_text()
    assert Settings.of() == settings


def test_a_description_of_an_earlier_release_is_still_started(tmp_path: Path) -> None:
    description = tmp_path / "process.json"
    description.write_text(json.dumps({"command": ["/usr/bin/env"], "environment": {"NAME": "kept"}}))

    done = subprocess.run(
        [sys.executable, "-I", "-S", exec_process.__file__, description],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "NAME=kept" in done.stdout.splitlines()
