"""Application: folds the log as the live version does, and from another start on, and compares both. Writes nothing but its result."""

import argparse
import logging
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col
from pyspark.sql.types import NumericType

from include.declarations.read_model import ReadModel, read_model
from include.errors import FoldlakeError
from include.position import Offsets
from include.settings import Settings
from include.spark.lake_config import DECODE_ONCE
from include.versions.changes import record_of
from include.versions.registry import VersionRegistry
from include.versions.reset_preview import FieldChange, KeyChange, ResetPreview
from include.versions.start_rule import StartRule, start_offsets
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.replay import IdsOf, replayed_events, source_ends, with_needed_schema_ids
from spark_jobs.runtime.lake_job import run_lake_job
from spark_jobs.runtime.session import session_settings

LOG = logging.getLogger("foldlake.reset_preview")
LARGEST = 10
EVENTS = "event_count"


def main() -> None:
    """Run under spark-submit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--start", required=True, help="where to start (include/versions/start_rule.py)")
    parser.add_argument("--result", required=True, type=Path, help="the file to write, in JSON")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        found = reset_preview(spark, settings, model, StartRule.parse(arguments.start))
        arguments.result.write_text(found.to_json(), encoding="utf-8")

    run_lake_job("reset-preview", job)


def reset_preview(spark: SparkSession, settings: Settings, model: ReadModel, rule: StartRule) -> ResetPreview:
    """Fold the log up to its end from both starts, with the fold revision of the live version, and compare.

    Raises FoldlakeError if there is no live version, StartRuleError, KafkaUnavailableError.
    """
    servers = settings.kafka.bootstrap_servers
    with VersionRegistry(servers) as registry:
        live = record_of(registry, model.name).live
    if live is None:
        raise FoldlakeError(f"{model.name} has no live version: there is nothing to reset.")
    before = model.reading(live.source_topic, live.starts)
    starts = start_offsets(servers, before.source_topic, rule, live.starts)
    after = model.reading(live.source_topic, starts)
    until = source_ends(servers, before.source_topic)

    def compare(ids_of: IdsOf) -> ResetPreview:
        folds = [
            fold(side, live.fold_revision, replayed_events(spark, settings, side, until, ids_of=ids_of))
            for side in (before, after)
        ]
        names = [field.name for field in model.state_fields(live.fold_revision)]
        both = _joined(folds[0], folds[1], names).persist()
        try:
            return _preview(model.name, live.number, (live.starts, starts), both, names)
        finally:
            both.unpersist()

    with session_settings(spark, DECODE_ONCE):
        return with_needed_schema_ids(compare)


def _joined(before: DataFrame, after: DataFrame, names: list[str]) -> DataFrame:
    """Return key, before, after: the records of both folds as structs; null where a key has none."""
    sides = [
        frame.select("key", F.struct(*names, EVENTS).alias(side))
        for side, frame in (("before", before), ("after", after))
    ]
    return sides[0].join(sides[1], "key", "full_outer")


def _preview(
    read_model: str, live: int, starts: tuple[Offsets, Offsets], both: DataFrame, names: list[str]
) -> ResetPreview:
    before, after = col("before"), col("after")
    fields = both.select("before.*").schema
    numeric = [name for name in names if isinstance(fields[name].dataType, NumericType)]
    state = [F.struct(*(side[name] for name in names)) for side in (before, after)]
    sums = [
        F.sum(side[name]).alias(f"{i}.{name}") for i, side in enumerate((before, after)) for name in numeric
    ]
    row = both.agg(
        F.sum(before[EVENTS]).alias("events_before"),
        F.sum(after[EVENTS]).alias("events_after"),
        F.count("before").alias("keys_before"),
        F.count("after").alias("keys_after"),
        F.count_if(before.isNull()).alias("added"),
        F.count_if(after.isNull()).alias("gone"),
        F.count_if(before.isNotNull() & after.isNotNull() & ~state[0].eqNullSafe(state[1])).alias("changed"),
        *sums,
    ).first()
    assert row is not None  # noqa: S101 - an aggregate without groups has one row
    measure = numeric[0] if numeric else EVENTS
    change = F.abs(_number(after, measure) - _number(before, measure))
    largest = both.where(~before.eqNullSafe(after)).orderBy(change.desc(), "key").limit(LARGEST).collect()
    return ResetPreview(
        read_model,
        live,
        (_json(starts[0]), _json(starts[1])),
        (row.events_before or 0, row.events_after or 0),
        (row.keys_before, row.keys_after),
        row.changed,
        row.added,
        row.gone,
        {name: FieldChange(_text(row[f"0.{name}"]), _text(row[f"1.{name}"])) for name in numeric},
        tuple(
            KeyChange(
                found.key,
                _field(found.before, found.after, EVENTS),
                {name: _field(found.before, found.after, name) for name in names},
            )
            for found in largest
        ),
    )


def _number(side: Column, name: str) -> Column:
    return F.coalesce(side[name], F.lit(0))


def _field(before: dict[str, object] | None, after: dict[str, object] | None, name: str) -> FieldChange:
    return FieldChange(*(None if side is None else _text(side[name]) for side in (before, after)))


def _text(value: object) -> str:
    return "null" if value is None else str(value)


def _json(starts: Offsets) -> dict[str, int]:
    return {str(partition): offset for partition, offset in starts.items()}


if __name__ == "__main__":
    main()
