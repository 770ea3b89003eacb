"""Application: compares the states of a rebuild's version with those of the live version as of the same events, and writes the report."""

import argparse
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.lake.tables import staging_path
from include.position import Offsets
from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import Comparison, VersionStates
from include.rebuild.comparison.fold_source import FoldText, fold_code
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import require_not_ended
from include.versions.version_record import Stage, Version
from spark_jobs.comparison.live_fold import no_replay_because, replayed_states, stored_states
from spark_jobs.comparison.state_difference import StateDifference, compare_states
from spark_jobs.folding.expressions.columns import field_texts, inner_text
from spark_jobs.folding.replay import IdsOf, decoding, source_ends
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.runtime.lake_job import run_lake_job

LOG = logging.getLogger("foldlake.compare_versions")


class NoStagingError(FoldlakeError):
    """The version has no staging table, whose states could be compared."""


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", required=True, type=int, help="number of the version")
    parser.add_argument("--run-id", required=True, help="identifies the comparison and its report")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        compare_versions(spark, settings, model, arguments.version, arguments.run_id)

    run_lake_job("compare-versions", job)


def compare_versions(
    spark: SparkSession, settings: Settings, model: ReadModel, number: int, run_id: str
) -> None:
    """Compare a version's staging table with the live version, and write the report. May be killed and repeated at any point.

    The live version is folded again up to the events that staging contains, so that only what the version changes is a difference.
    Does nothing for a version that has already been promoted.

    Raises NoStagingError, KafkaUnavailableError, UnknownVersionError, VersionAbandonedError.
    """
    started_s = time.monotonic()
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        record = record_of(registry, model.name)
    stage = record.stage_of(number)
    if stage in (Stage.LIVE, Stage.PREVIOUS, Stage.RETIRED):
        LOG.info("v%d of %s is %s: it was compared before its promotion", number, model.name, stage)
        return
    version = require_not_ended(record, number)
    table = LakeTable(
        spark, staging_path(settings.lake_root, model.name, number), settings.lake.retention_h, model
    )
    staged = table.newest_tag()
    if staged is None:
        raise NoStagingError(
            f"v{number} of {model.name} has no staging table, with which the live version could be compared: the stage build_staging "
            "writes it."
        )
    live = record.live
    difference, notes = _difference(spark, settings, table, version, live, staged.tag.complete_up_to)
    comparison = _comparison(model, version, live, difference, notes, run_id, started_s)
    report.write(settings.home, comparison)
    LOG.info(
        "%s %s: %d keys change, %d are new, %d are gone; took %.1f s. Report: %s",
        model.name,
        comparison.label,
        comparison.changed,
        comparison.added,
        comparison.gone,
        comparison.duration_s,
        report.report_url(settings.reports_base_url, run_id),
    )


def _difference(
    spark: SparkSession,
    settings: Settings,
    table: LakeTable,
    version: Version,
    live: Version | None,
    until: Offsets,
) -> tuple[StateDifference, tuple[str, ...]]:
    model = table.model
    staged = spark.read.format("delta").load(table.path)
    names = [field.name for field in model.state_fields(version.fold_revision)]
    if live is None:
        note = "There is no live version: every key counts as an added one."
        return compare_states(staged.limit(0), staged, names, names), (note,)
    live_names = [field.name for field in model.state_fields(live.fold_revision)]
    servers = settings.kafka.bootstrap_servers
    reason = no_replay_because(servers, model, live)
    if reason:
        stored = stored_states(spark, settings.lake_root, settings.lake.retention_h, model, live, reason)
        before = staged.limit(0) if stored.frame is None else stored.frame
        return compare_states(before, staged, live_names, names), (stored.note,)
    until, notes = _same_events(servers, model, version, live, until)

    def compare(ids_of: IdsOf) -> StateDifference:
        before = replayed_states(spark, settings, table, live, until, ids_of)
        return compare_states(before, staged, live_names, names)

    return decoding(spark, compare), notes


def _same_events(
    bootstrap_servers: str, model: ReadModel, version: Version, live: Version, until: Offsets
) -> tuple[Offsets, tuple[str, ...]]:
    """Return up to where the live version is folded: to where staging is, or to the end of another topic."""
    topics = [model.reading(one.source_topic).source_topic for one in (live, version)]
    if topics[0] == topics[1]:
        return until, ()
    note = (
        f"The versions fold different topics, {topics[0]} and {topics[1]}: what was on only one of them when the comparison started is a "
        "difference, too."
    )
    return source_ends(bootstrap_servers, topics[0]), (note,)


def _comparison(
    model: ReadModel,
    version: Version,
    live: Version | None,
    found: StateDifference,
    notes: tuple[str, ...],
    run_id: str,
    started_s: float,
) -> Comparison:
    before, after = (
        None if one is None else _side(model, one, events, keys)
        for one, events, keys in zip((live, version), found.events, found.keys, strict=True)
    )
    assert after is not None  # noqa: S101 - the version exists
    fields = [
        () if one is None else tuple(field.name for field in model.state_fields(one.fold_revision))
        for one in (live, version)
    ]
    is_first = live is None
    return replace(
        found.comparison(model.name, before, after),
        new_fields=() if is_first else tuple(name for name in fields[1] if name not in fields[0]),
        dropped_fields=tuple(name for name in fields[0] if name not in fields[1]),
        folds=tuple(_fold_text(model, one.fold_revision) for one in (live, version) if one is not None),
        notes=notes,
        run_id=run_id,
        reason=version.reason,
        compared_at=datetime.now(UTC).isoformat(timespec="seconds"),
        duration_s=time.monotonic() - started_s,
    )


def _side(model: ReadModel, version: Version, events: int, keys: int) -> VersionStates:
    reading = model.reading(version.source_topic, version.starts)
    return VersionStates.of(version.number, version.fold_revision, reading, events, keys)


def _fold_text(model: ReadModel, revision: int) -> FoldText:
    fold = model.folds.get(revision)
    if fold is None:
        return FoldText(revision, "")
    try:
        texts = fold if isinstance(fold, Mapping) else field_texts(fold)
        columns = tuple(f"{name} = {inner_text(text)}" for name, text in texts.items())
    except Exception as error:  # noqa: BLE001 - a fold that cannot be built any more is shown by its source
        columns = (f"cannot be built: {error}",)
    return FoldText(revision, fold_code(fold), columns)


if __name__ == "__main__":
    main()
