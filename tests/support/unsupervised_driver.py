"""The stream driver without Airflow, launched by the same wrapper: for tests and benchmarks that need one of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.settings import CHECKOUT, Settings
from include.spark.stream_config import stream_config, stream_master
from stack.launchers.stream_driver import running, stop
from stack.settings_environment import settings_environment

STOP_TIMEOUT_S = 30


def log_path(settings: Settings) -> Path:
    """Return the file that the driver's log goes to."""
    return settings.home / "logs" / "stream-driver.log"


def launch(settings: Settings) -> subprocess.Popen[bytes]:
    """Start the driver and return its process, which becomes the JVM."""
    log_path(settings).parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(CHECKOUT / "stack" / "bin" / "spark-submit-supervised"),
        *("--master", stream_master(settings)),
        *(f"--conf={name}={value}" for name, value in stream_config(settings).items()),
        str(CHECKOUT / "spark_jobs" / "stream.py"),
    ]
    environment = {**os.environ, **settings_environment(settings), "FOLDLAKE_PYTHON": sys.executable}
    with log_path(settings).open("ab") as log:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)


@contextmanager
def stream_driver(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """Run the driver for as long as the block does, then stop it in good order."""
    process = launch(settings)
    try:
        yield process
    finally:
        driver = running(settings)
        if driver is None or driver.pid != process.pid:
            # It has ended, or waits for the lock and has written nothing.
            process.kill()
        else:
            stop(settings, timeout_s=STOP_TIMEOUT_S)
        process.wait(STOP_TIMEOUT_S)
