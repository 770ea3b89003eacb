"""The records that a check reads from the nodes are in its job's scratch directory, which the next job removes if it is killed."""

from pathlib import Path

import pytest

from include.quality.check import QualityError
from include.scratch import scratch_dir, scratch_folder
from include.settings import Settings
from spark_jobs.quality.stores.nodes import spool_dir
from stack.launchers.spark_submit import submit_environment
from stack.tools import Tools

NOBODY = "4194999"


def test_the_scratch_dir_of_a_killed_check_is_removed_with_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.of(home=tmp_path)
    killed = tmp_path / "jobs" / NOBODY
    python = Tools(settings.tools).main_python
    environment = submit_environment(python, killed, {}, "local[2]")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", environment["SPARK_LOCAL_DIRS"])
    spool_dir().mkdir(parents=True)
    assert len(list(killed.iterdir())) == 1

    scratch_dir(tmp_path / "jobs")

    assert not killed.exists()


def test_a_check_with_duckdb_leaves_no_folder_even_if_it_fails(tmp_path: Path) -> None:
    def check() -> None:
        with scratch_folder(tmp_path) as folder:
            (folder / "check.duckdb").touch()
            raise QualityError("no verdict")

    with pytest.raises(QualityError):
        check()

    assert list(tmp_path.iterdir()) == []
