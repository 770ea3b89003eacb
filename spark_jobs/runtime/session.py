"""The Spark session of the stream driver and of the lake jobs."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

# For queries of few rows. Generating and compiling their code takes longer than running them, and adapting a plan to what its stages have
# read formats the whole plan, with those of all cached frames, again after each stage.
SMALL_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

# For queries of so few rows that a task for each core costs more than it saves.
ONE_TASK = {"spark.sql.shuffle.partitions": "1"}


def spark_session(
    app_name: str, config: Mapping[str, str], master: str = "", jars: Sequence[Path] = ()
) -> SparkSession:
    """Return the Spark session.

    Set `master` and `jars` in a process that starts its own JVM; under spark-submit both are set already.
    """
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
    return builder.getOrCreate()


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
