"""The Spark session of the stream driver and of the lake jobs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession


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
    return builder.getOrCreate()
