"""Submits the stream driver to Spark: one driver per home, which ends with its launcher.

The process sets the parent-death signal, takes the driver's lock, and becomes the JVM by `exec`, on a cluster through spark-submit:
it stays one process, which holds the lock until it can no longer write. A standby driver becomes the JVM first, and gets the lock when
the driver has ended. This module runs in the main environment, Spark in the stream's.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from include.errors import FoldlakeError, SettingsError
from include.process import die_with_parent, launcher_pid
from include.scratch import scratch_dir
from include.settings import CHECKOUT, Settings
from include.stream.driver_launch import TURN_FILE, WRITES_CACHE
from stack.launchers import stream_driver
from stack.launchers.early_python import start_python
from stack.launchers.stream_jvm import MODULE_OPTIONS, jvm_command, local_class_path
from stack.tools import Tools

# On the standard output at each start, of stubs in the cache that have another name.
NO_CACHE_WARNINGS = "-Xlog:aot*=error"
LOGGING = f"-Dlog4j2.configurationFile={CHECKOUT / 'include' / 'spark' / 'driver_log.properties'}"
# A killed JVM releases the lock within a second; a driver that stops its queries gracefully may take this long.
LOCK_WAIT_S = 30.0
# EX_TEMPFAIL of sysexits.h: try again later.
EXIT_LOCKED = 75


def launch(arguments: list[str], new_cache: Path | None = None, *, is_standby: bool = False) -> None:
    """Execute spark-submit with these arguments in place of this process, or print the reason for a failure and exit.

    new_cache: a file to which the JVM writes an ahead-of-time cache when it ends.
    is_standby: whether the driver waits for the lock only when it is ready to fold.
    """
    parent_pid = launcher_pid()
    die_with_parent(parent_pid)
    settings = Settings()
    tools = Tools(settings.tools)
    # `exec` keeps the process, so its id and start time are also those of the JVM.
    started_s = stream_driver.started_s(psutil.Process())
    scratch = scratch_dir(stream_driver.directory(settings.home) / "tmp")
    turn = scratch / "turn"
    try:
        master = master_of(arguments)
        command = stream_command(tools, scratch, arguments, new_cache)
        environment = submit_environment(tools.stream_python, scratch, os.environ, master)
        if new_cache is not None:
            environment[WRITES_CACHE] = "true"
        own = stream_driver.Driver(os.getpid(), parent_pid, started_s, master)
        if is_standby:
            environment[TURN_FILE] = str(turn)
            stream_driver.await_turn(settings.home, own, turn)
        else:
            stream_driver.acquire(settings.home, wait_s=LOCK_WAIT_S)
            stream_driver.announce(settings.home, own)
        if master.startswith("local"):
            environment = start_python(tools.stream_python, arguments, scratch, environment)
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_LOCKED if isinstance(error, stream_driver.DriverLockedError) else 1)
    os.execve(command[0], command, environment)  # noqa: S606


def stream_command(
    tools: Tools, scratch: Path, arguments: list[str], new_cache: Path | None = None
) -> list[str]:
    """Return the command that submits one of the stream's applications: a JVM with Java 25 here, spark-submit for a cluster.

    Raises:
        FoldlakeError: a tool is missing, or the arguments are incomplete.
    """
    home = spark_home(tools.stream_python)
    connectors = tools.jars("stream")
    if not master_of(arguments).startswith("local"):
        # In the machine's Java, like the workers.
        jars = ",".join(map(str, connectors))
        return [str(home / "bin" / "spark-submit"), "--jars", jars, *arguments]
    cache = ""
    if new_cache is not None:
        cache = f"-XX:AOTCacheOutput={new_cache}"
    elif tools.driver_cache.is_file():
        cache = f"-XX:AOTCache={tools.driver_cache}"
    options = (*MODULE_OPTIONS, NO_CACHE_WARNINGS, LOGGING)
    return jvm_command(tools.java25, local_class_path(home, connectors), scratch, arguments, cache, options)


def master_of(arguments: Sequence[str]) -> str:
    """Return the value of `--master`.

    Raises:
        SettingsError: it is missing or "yarn", to which the operator falls back if its connection is undefined.
    """
    master = arguments[arguments.index("--master") + 1] if "--master" in arguments[:-1] else ""
    if master in ("", "yarn"):
        raise SettingsError(
            f"The Spark job's master is {master!r}: Airflow's connection to Spark is not defined. Hint: start Airflow"
            " with `./foldlake up`, or set AIRFLOW_CONN_STREAM_SPARK and AIRFLOW_CONN_LAKE_SPARK as described in"
            " docs/airflow.md."
        )
    return master


def spark_home(python: Path) -> Path:
    """Return the Spark distribution in an interpreter's environment.

    Raises:
        SettingsError: the environment has no pyspark.
    """
    environment = python.parent.parent
    homes = sorted(environment.glob("lib/python3*/site-packages/pyspark"))
    if not homes:
        raise SettingsError(f"pyspark is not installed in {environment}. Hint: run `./foldlake prepare`.")
    return homes[-1]


def submit_environment(
    python: Path, scratch: Path, inherited: Mapping[str, str], master: str
) -> dict[str, str]:
    """Return spark-submit's environment: the interpreter's own Spark, no Airflow variables, temporary files in `scratch`."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("AIRFLOW__", "AIRFLOW_CONN_", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "PYTHON"))
    }
    kept |= {
        "PYTHONPATH": str(CHECKOUT),
        "PYTHONUNBUFFERED": "1",
        # Keeps the application's folder off the module search path: a job there may have the same name as a package.
        "PYTHONSAFEPATH": "1",
        "SPARK_HOME": str(spark_home(python)),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={scratch}",
    }
    if master.startswith("local"):
        kept["SPARK_LOCAL_IP"] = "127.0.0.1"
    return kept
