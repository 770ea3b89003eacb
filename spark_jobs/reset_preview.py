"""Application: folds the log as the live version does, and from another start on, and compares both. Writes nothing but its result."""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.rebuild.comparison.comparison import Comparison, VersionStates
from include.rebuild.comparison.state_difference import StateDifference
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.start_rule import StartRule, start_offsets
from spark_jobs.comparison.state_difference import compare_states
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.replay import IdsOf, decoding, replayed_events, source_ends
from spark_jobs.runtime.lake_job import run_lake_job


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


def reset_preview(spark: SparkSession, settings: Settings, model: ReadModel, rule: StartRule) -> Comparison:
    """Fold the log up to its end from both starts, with the fold revision of the live version, and compare.

    Raises FoldlakeError if there is no live version, StartRuleError, KafkaUnavailableError.
    """
    kafka = settings.kafka_connection
    with VersionRegistry(kafka) as registry:
        live = record_of(registry, model.name).live
    if live is None:
        raise FoldlakeError(f"{model.name} has no live version: there is nothing to reset.")
    before = model.reading(live.source_topic, live.starts)
    starts = start_offsets(kafka, before.source_topic, rule, live.starts)
    after = model.reading(live.source_topic, starts)
    until = source_ends(kafka, before.source_topic)
    names = [field.name for field in model.state_fields(live.fold_revision)]

    def compare(ids_of: IdsOf) -> StateDifference:
        revision = live.fold_revision
        folds = [
            fold(
                side,
                revision,
                replayed_events(spark, settings, side, until, revision=revision, ids_of=ids_of),
            )
            for side in (before, after)
        ]
        return compare_states(folds[0], folds[1], names, names)

    found = decoding(spark, compare)
    sides = [
        VersionStates.of(number, live.fold_revision, reading, events, keys)
        for number, reading, events, keys in zip(
            (live.number, 0), (before, after), found.events, found.keys, strict=True
        )
    ]
    return found.comparison(model.name, *sides)


if __name__ == "__main__":
    main()
