"""Which jobs are never handed to the job server."""

from pathlib import Path

import pytest

from include.settings import Settings
from stack.launchers.job_client import APPLICATIONS, _fingerprint, run_in_server


@pytest.mark.parametrize(
    "options", [["--master", "spark://127.0.0.1:7077"], ["--master", "yarn"], []], ids=" ".join
)
def test_a_job_of_a_cluster_or_without_a_master_is_submitted(tmp_path: Path, options: list[str]) -> None:
    arguments = [*options, str(APPLICATIONS / "compaction.py")]
    assert run_in_server(Settings.of(home=tmp_path), arguments) is None
    assert not list(tmp_path.rglob("*"))


def test_another_program_is_submitted(tmp_path: Path) -> None:
    arguments = ["--master", "local[2]", str(tmp_path / "own.py")]
    assert run_in_server(Settings.of(home=tmp_path), arguments) is None
    assert not list(tmp_path.rglob("*"))


def test_a_job_that_a_node_starts_fits_the_server_of_airflows_jobs(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path)
    of_node = settings.changed(
        node_name="node-2", node_port=5052, node_url="http://127.0.0.1:5052", node_store_dir=tmp_path
    )
    of_node = of_node.changed(lake_niceness=0)
    options = ["--master", "local[2]"]

    assert _fingerprint(of_node, options) == _fingerprint(settings, options)
    assert _fingerprint(settings.changed(lake_retention_h=1.0), options) != _fingerprint(settings, options)
