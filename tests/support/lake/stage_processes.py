"""The stages of a rebuild as processes, started as Airflow starts them."""

import os
import subprocess
import sys
from typing import BinaryIO

from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.lake_config import lake_config
from include.spark.stream_config import LOCAL_MASTER, stream_config


class StageProcesses:
    """Starts the stages of a read model's rebuild in separate processes, which write to `log`."""

    def __init__(self, settings: Settings, read_model: str, log: BinaryIO) -> None:
        self._settings = settings
        self._read_model = read_model
        self._environment = {
            **os.environ,
            **settings_environment(settings),
            "FOLDLAKE_PYTHON": sys.executable,
        }
        self.log = log

    def action(self, stage: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the action of a stage."""
        return self._start(
            sys.executable,
            "-m",
            "tests.support.rebuild.run_stage",
            stage,
            "--read-model",
            self._read_model,
            *arguments,
        )

    def stream_job(self, job: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a job with the stream's Spark."""
        settings = self._settings
        return self._submit(
            "spark-submit-catch-up",
            settings.stream.master or LOCAL_MASTER,
            stream_config(settings),
            job,
            *arguments,
        )

    def lake_job(self, job: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a job with the lake's Spark."""
        settings = self._settings
        return self._submit(
            "spark-submit-lake", settings.lake.master, lake_config(settings.lake), job, *arguments
        )

    def _submit(
        self, binary: str, master: str, config: dict[str, str], job: str, *arguments: str
    ) -> subprocess.Popen[bytes]:
        return self._start(
            str(CHECKOUT / "stack" / "bin" / binary),
            *("--master", master),
            *(f"--conf={name}={value}" for name, value in config.items()),
            str(CHECKOUT / "spark_jobs" / f"{job}.py"),
            *("--read-model", self._read_model),
            *arguments,
        )

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=CHECKOUT, env=self._environment, stdout=self.log, stderr=self.log
        )
