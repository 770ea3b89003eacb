"""Airflow's processes use the settings that `up` has written, whatever supervisord was started with."""

import os
from pathlib import Path

import pytest

from include.settings import WRITTEN_SETTINGS, Settings
from stack.components import airflow
from stack.components.airflow_component import forget_settings

PASSWORD = "correct horse"  # noqa: S105 - not of anything


def test_settings_of_an_earlier_up_are_forgotten_and_secrets_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.of(home=tmp_path, stream_pace="throughput", airflow_password=PASSWORD)
    airflow.update(settings, print)
    earlier = {
        WRITTEN_SETTINGS: str(airflow.settings_file(tmp_path)),
        "FOLDLAKE_STREAM_PACE": "latency",
        "FOLDLAKE_AIRFLOW_PASSWORD": PASSWORD,
        "FOLDLAKE_AIRFLOW_PASSWORD_FILE": "/of/an/earlier/up",
    }
    for name, value in earlier.items():
        monkeypatch.setenv(name, value)

    forget_settings()

    assert Settings() == settings
    assert "FOLDLAKE_AIRFLOW_PASSWORD_FILE" not in os.environ


def test_the_next_task_reads_what_has_been_written_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.of(home=tmp_path)
    monkeypatch.setenv(WRITTEN_SETTINGS, str(airflow.settings_file(tmp_path)))
    for heap_mb in (300, 400):
        airflow.update(settings.changed(kafka_heap_mb=heap_mb), print)

        assert Settings().kafka.heap_mb == heap_mb
