"""Makes the archive of the classes of the lake's JVMs: `python -m stack.train_lake FILE`.

A Spark session of the lake, without servers, folds synthetic events of a read model, and writes, merges, optimises and reads a table, without
and with generated code. Its JVM writes the archive when it ends. The settings of this machine are not used. The archive saves each start 1.5 s of processor time.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.declarations.load import load_catalog
from include.errors import FoldlakeError
from include.process import lower_priority
from include.settings import Settings
from spark_jobs.runtime.session import session_settings
from stack.declaration_testing.results import folded
from stack.declaration_testing.session import lake_session
from stack.train_driver import synthetic_event

NICENESS = 10
EVENTS = 20
# The session has the settings of tests, whose tables are small; jobs have Spark's defaults.
GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
# The JVM writes the archive in about ten seconds; a busy machine may take minutes.
END_TIMEOUT_S = 240.0
# Standard output and standard error.
OUTPUTS = (1, 2)
LOGGED_LINES = 20


class TrainingError(FoldlakeError):
    """The session failed, or its JVM wrote no archive."""


def main() -> int:
    """Write the archive to the file that the argument names; returns the exit status."""
    lower_priority(NICENESS)
    try:
        train(Path(sys.argv[1]))
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def train(archive: Path) -> None:
    """Write the archive.

    Raises:
        TrainingError: the session failed, or its JVM wrote no archive.
    """
    new = archive.with_name(f".{archive.name}.{os.getpid()}.new")
    with TemporaryDirectory(prefix="foldlake-training-", ignore_cleanup_errors=True) as folder:
        home, log = Path(folder), Path(folder) / "lake-training.log"
        try:
            with _output_to(log):
                _run(home, new)
            new.replace(archive)
        except Exception as error:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOGGED_LINES:]
            raise TrainingError(
                "\n".join((f"No archive of the lake's classes: {error!r}.", *lines))
            ) from error
        finally:
            new.unlink(missing_ok=True)


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Write the output of this process and of those that it starts to a file in a block."""
    own = [os.dup(number) for number in OUTPUTS]
    with log.open("ab") as file:
        for number in OUTPUTS:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, descriptor in zip(OUTPUTS, own, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _run(home: Path, new_archive: Path) -> None:
    settings = Settings.of(home=home)
    # Of all read models, the first one.
    model = next(iter(load_catalog().models.values()))
    schema = model.event_schemas[0]
    events = [
        {"event_type": schema.name, **synthetic_event(schema, number).fields()} for number in range(EVENTS)
    ]
    with lake_session(settings, home / "spark", 2, new_archive, END_TIMEOUT_S) as spark:
        folded(spark, model, events)
        path = str(home / "table")
        _write(spark, path)
        with session_settings(spark, GENERATED_CODE):
            _compare(spark, path)


def _write(spark: SparkSession, path: str) -> None:
    """Write a table as compactions and event tables do."""
    _rows(spark, 0).write.format("delta").partitionBy("part").save(path)
    table = DeltaTable.forPath(spark, path)
    merge = table.alias("old").merge(_rows(spark, 5).alias("new"), "old.key = new.key")
    merge.whenMatchedUpdateAll("new.count > old.count").whenNotMatchedInsertAll().execute()
    _rows(spark, 20).write.format("delta").mode("append").save(path)
    table.optimize().executeCompaction()
    table.vacuum(0)


def _compare(spark: SparkSession, path: str) -> None:
    """Read a table as checks do."""
    stored, replayed = spark.read.format("delta").load(path).cache(), _rows(spark, 5)
    both = stored.join(replayed.withColumnRenamed("count", "expected"), ["key"], "full_outer")
    grouped = both.groupBy("key").agg(F.sum("count"), F.max_by("expected", "count"), F.collect_set("count"))
    grouped.orderBy("key").limit(3).toPandas()


def _rows(spark: SparkSession, first: int) -> DataFrame:
    return spark.range(first, first + 10).selectExpr(
        "cast(id as string) as key", "id as count", "struct(id as amount) as state", "id % 2 as part"
    )


if __name__ == "__main__":
    sys.exit(main())
