"""The Spark session of every application."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.process import lower_threads
from spark_jobs.runtime.early_start import await_gateway

# Where PySpark finds the JVM's functions.
FUNCTIONS = "org.apache.spark.sql.functions"
# For queries of few rows. Generating and compiling their code takes longer than running them, and adapting a plan to what its stages have
# read formats the whole plan, with those of all cached frames, again after each stage.
SMALL_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
# For queries of so few rows that a task for each core costs more than it saves.
ONE_TASK = {"spark.sql.shuffle.partitions": "1"}

# The thread that compiles hot methods for the second time, and its nice value: a start needs both cores, and it took a third of the processor time until
# the first fold. With 5, that came after 10.3 instead of 12.6 s on a busy machine. With 10, tasks took twice the time for a backlog, in code that was not compiled.
C2_THREADS, C2_NICENESS = "C2 CompilerThre", 5


def spark_session(
    app_name: str, config: Mapping[str, str], master: str = "", jars: Sequence[Path] = ()
) -> SparkSession:
    """Return the Spark session.

    Set `master` and `jars` in a process that starts its own JVM; under spark-submit both are set already.
    """
    await_gateway()
    builder = SparkSession.builder.appName(app_name)
    if master:
        builder = builder.master(master)
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    for name, value in config.items():
        builder = builder.config(name, value)
    # Spark creates this folder, which stays empty, in the working directory by default.
    scratch = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    builder = builder.config("spark.sql.warehouse.dir", str(Path(scratch) / "warehouse"))
    spark = builder.getOrCreate()
    keep_functions(spark._jvm)  # noqa: SLF001 - PySpark looks there
    return spark


class _Members:
    """A Java class whose static members are looked up once."""

    def __init__(self, java_class: Any) -> None:  # noqa: ANN401 - a Java class
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a member of a Java class
        found = getattr(self._java_class, name)
        setattr(self, name, found)
        return found


def keep_functions(jvm: Any) -> None:  # noqa: ANN401 - the classes of a JVM
    """Have PySpark's functions, such as `col`, look up their class and method in the JVM once, instead of at each call, with two requests."""
    if FUNCTIONS not in vars(jvm):
        setattr(jvm, FUNCTIONS, _Members(getattr(jvm, FUNCTIONS)))


def lower_compiler_priority() -> None:
    """Lower the priority of the thread that compiles hot methods, in the JVM that has launched this process. It cannot be raised again."""
    lower_threads(os.getppid(), C2_THREADS, C2_NICENESS)


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for the duration of a block: Delta reads a commit's metadata only from the session."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value_before in before.items():
            if value_before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value_before)
