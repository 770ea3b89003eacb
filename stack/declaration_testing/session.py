"""A Spark session of the lake in the process of a test."""

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from include.errors import FoldlakeError
from include.settings import Settings
from include.spark.lake_config import lake_config
from include.waiting import wait_for
from spark_jobs.runtime.session import SMALL_DATA, spark_session
from stack.launchers.lake_jvm import lake_command
from stack.launchers.spark_submit import spark_home
from stack.tools import Tools

# A test plans much and computes few rows: C2 took almost half of the processor time to compile, and no test was faster.
QUICK_JIT = "-XX:TieredStopAtLevel=1"
START_TIMEOUT_S = 120.0
POLL_S = 0.02


@contextmanager
def declaration_session() -> Iterator[SparkSession]:
    """Yield a session for the events of a test, which ends with the block. It takes about five seconds to start."""
    with tempfile.TemporaryDirectory() as scratch, lake_session(Settings(), Path(scratch), cores=1) as spark:
        yield spark


@contextmanager
def lake_session(
    settings: Settings,
    scratch: Path,
    cores: int,
    new_archive: Path | None = None,
    end_timeout_s: float = 30.0,
) -> Iterator[SparkSession]:
    """Yield a session with the lake's configuration and the prepared Java and Spark, for small data; its JVM ends with the block.

    Args:
        settings: those of the lake.
        scratch: for Spark's temporary files.
        cores: how many tasks run at a time.
        new_archive: a file to which the JVM writes the archive of its classes when it ends.
        end_timeout_s: how long the JVM may take to end.

    Raises:
        FoldlakeError: a tool is missing, or the JVM has ended.
    """
    tools = Tools(settings.tools)
    scratch.mkdir(parents=True, exist_ok=True)
    config = lake_config(settings.lake) | SMALL_DATA
    config["spark.driver.extraJavaOptions"] += f" {QUICK_JIT}"
    config["spark.master"] = f"local[{cores}]"
    # As the launcher of the jobs does: staging decodes in Python workers.
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home(tools.main_python)),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    before = dict(os.environ)
    os.environ |= environment
    try:
        with _jvm(tools, config, scratch, new_archive, end_timeout_s):
            spark = spark_session("foldlake-tests", config)
            yield spark
            spark.stop()
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _jvm(
    tools: Tools, config: Mapping[str, str], scratch: Path, new_archive: Path | None, end_timeout_s: float
) -> Iterator[None]:
    """Run the JVM to which PySpark connects by the variables of this process."""
    gateway = scratch / "gateway"
    arguments = [f"--conf={name}={value}" for name, value in config.items()]
    command = lake_command(tools, Path(os.environ["SPARK_HOME"]), scratch, arguments, new_archive)
    # It ends when its input does, and not by Ctrl+C.
    process = subprocess.Popen(
        [*command, "pyspark-shell"],
        stdin=subprocess.PIPE,
        env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(gateway)},
        process_group=0,
    )
    try:
        wait_for(
            lambda: gateway.exists() or process.poll() is not None, timeout_s=START_TIMEOUT_S, poll_s=POLL_S
        )
        if not gateway.exists():
            raise FoldlakeError("The JVM of Spark did not start (see above).")
        # `org.apache.spark.api.python.PythonGatewayServer`: the port, the length of the secret, and the secret.
        address = gateway.read_bytes()
        gateway.unlink()
        port, length = struct.unpack_from(">ii", address)
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = address[8 : 8 + length].decode()
        yield
        _forget_jvm()
    finally:
        assert process.stdin is not None  # noqa: S101 - a pipe was requested
        process.stdin.close()
        try:
            process.wait(end_timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _forget_jvm() -> None:
    """Have the next session of this process connect to another JVM: PySpark keeps the connection."""
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
        gateway.shutdown()
