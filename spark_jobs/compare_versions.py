"""Application: compares the states of a rebuild's version with those of the live version as of the same events, and writes the report."""

import argparse
import time
from dataclasses import replace

from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.declarations.rules.expression import Fields
from include.lake.tables import staging_path
from include.rebuild.comparison.compared_versions import ComparedVersions, HowCompared
from include.rebuild.comparison.state_difference import StateDifference
from include.settings import CheckEngine, Settings
from spark_jobs.comparison.live_fold import replayed_states, stored_states
from spark_jobs.comparison.state_difference import compare_states
from spark_jobs.folding.expressions.columns import field_texts, inner_text
from spark_jobs.folding.replay import IdsOf, decoding
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.lake_job import run_lake_job


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", required=True, type=int, help="number of the version")
    parser.add_argument("--run-id", required=True, help="identifies the comparison and its report")
    parser.add_argument("--engine-reason", default="", help="why Spark compares and not DuckDB")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        compare_versions(spark, settings, model, arguments.version, arguments.run_id, arguments.engine_reason)

    run_lake_job("compare-versions", job)


def compare_versions(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    number: int,
    run_id: str,
    engine_reason: str = "",
) -> None:
    """Compare a version's staging table with the live version, and write the report. May be killed and repeated at any point.

    The live version is folded again up to the events that staging contains, so that only what the version changes is a difference.
    Does nothing for a version that has already been promoted.

    Raises NoStagingError, KafkaUnavailableError, UnknownVersionError, VersionAbandonedError.
    """
    started_s = time.monotonic()
    path = staging_path(settings.lake_root, model.name, number)
    table = LakeTable(spark, path, settings.lake.retention_h, model)
    versions = ComparedVersions.of(settings, model, number, table.newest_tag)
    if versions is None:
        return
    found, versions = _difference(spark, settings, table, versions)
    folds = versions.fold_texts(_columns)
    how = HowCompared(CheckEngine.SPARK, engine_reason)
    versions.write_report(settings, run_id, found, folds, started_s, how)


def _difference(
    spark: SparkSession, settings: Settings, table: LakeTable, versions: ComparedVersions
) -> tuple[StateDifference, ComparedVersions]:
    """Return what differs, and the versions with a note on the states of a live version that cannot be folded again."""
    staged = spark.read.format("delta").load(table.path)
    names, live = versions.fields_of(versions.version), versions.live
    if live is None:
        return compare_states(staged.limit(0), staged, names, names), versions
    live_names = versions.fields_of(live)
    if versions.no_replay_because:
        stored = stored_states(
            spark,
            settings.lake_root,
            settings.lake.retention_h,
            table.model,
            live,
            versions.no_replay_because,
        )
        before = staged.limit(0) if stored.frame is None else stored.frame
        return compare_states(before, staged, live_names, names), replace(versions, notes=(stored.note,))

    def compare(ids_of: IdsOf) -> StateDifference:
        before = replayed_states(spark, settings, table, live, versions.until, ids_of)
        return compare_states(before, staged, live_names, names)

    return decoding(spark, compare), versions


def _columns(fold: Fields) -> tuple[str, ...]:
    try:
        return tuple(f"{name} = {inner_text(text)}" for name, text in field_texts(fold).items())
    except Exception as error:  # noqa: BLE001 - a fold that cannot be built any more is shown by its source
        return (f"cannot be built: {error}",)


if __name__ == "__main__":
    main()
