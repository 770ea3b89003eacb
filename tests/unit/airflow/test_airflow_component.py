"""What a process of Airflow does at its start: the slots of the pools on a machine, and the settings that `up` has written."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from include.airflow.names import LAKE_POOL, REBUILD_POOL
from include.settings import WRITTEN_SETTINGS, Settings
from stack.components import airflow
from stack.components.airflow_component import (
    PARALLEL_REBUILD_BYTES,
    PARALLEL_REBUILD_CORES,
    forget_settings,
    pools,
)

PASSWORD = "correct horse"  # noqa: S105 - not of anything


def test_settings_of_an_earlier_up_are_forgotten_and_secrets_kept(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, stream_pace="throughput", airflow_password=PASSWORD)
    airflow.update(settings, print)
    earlier = {
        WRITTEN_SETTINGS: str(airflow.settings_file(tmp_path)),
        "FOLDLAKE_STREAM_PACE": "latency",
        "FOLDLAKE_AIRFLOW_PASSWORD": PASSWORD,
        "FOLDLAKE_AIRFLOW_PASSWORD_FILE": "/of/an/earlier/up",
    }
    with patch.dict(os.environ, earlier):
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


def test_catch_up_and_staging_run_side_by_side_only_on_a_large_machine() -> None:
    large = pools(PARALLEL_REBUILD_CORES, PARALLEL_REBUILD_BYTES)
    few_cores = pools(PARALLEL_REBUILD_CORES - 1, PARALLEL_REBUILD_BYTES)
    little_memory = pools(PARALLEL_REBUILD_CORES, PARALLEL_REBUILD_BYTES - 1)

    assert [found[REBUILD_POOL][0] for found in (large, few_cores, little_memory)] == [2, 1, 1]
    assert {found[LAKE_POOL][0] for found in (large, few_cores, little_memory)} == {1}
