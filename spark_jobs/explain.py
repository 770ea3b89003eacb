"""Application: reads the events of one key from the log and folds them step by step. Writes nothing but its result."""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from confluent_kafka import murmur2
from pyspark.sql import DataFrame, SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, write_atomically
from include.position import Offsets
from include.settings import Settings
from include.versions.explanation import (
    ExplainedVersion,
    Explanation,
    failure_json,
    version_to_explain,
    versions_to_compare,
)
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version
from spark_jobs.folding.decode import good_events
from spark_jobs.folding.expressions.columns import with_short_names, without_short_names
from spark_jobs.folding.key_columns import is_record_key
from spark_jobs.folding.key_events import (
    counted_from,
    explained_events,
    folded_state,
    of_key,
    personal_fields,
)
from spark_jobs.folding.replay import IdsOf, decoded_records, decoding, source_state
from spark_jobs.runtime.lake_job import run_lake_job


def main() -> None:
    """Run under spark-submit. The result is an Explanation as JSON, or `{"error": <text>}`, with which the job has not failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--key", required=True, help="the key, in percent encoding")
    parser.add_argument("--version", type=int, help="number of the version; by default the live one")
    parser.add_argument(
        "--events", type=int, required=True, help="how many first, and how many newest events"
    )
    parser.add_argument("--personal", action="store_true", help="show personal fields of events")
    parser.add_argument("--result", required=True, type=Path, help="the file to write, in JSON")
    arguments = parser.parse_args()

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        masked = () if arguments.personal else personal_fields(model)
        try:
            found = explanation(
                spark, settings, model, unquote(arguments.key), arguments.version, arguments.events, masked
            ).to_json()
        except FoldlakeError as error:
            # Without a failure, after which the job server would end.
            found = failure_json(error)
        write_atomically(arguments.result, found, PRIVATE_FILE)

    run_lake_job("explain", job)


def explanation(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    key: str,
    number: int | None,
    limit: int,
    masked: Iterable[str],
) -> Explanation:
    """Return the explanation of a key: its events up to the end of the log, and what each version makes of them.

    Args:
        spark: the session.
        settings: of Kafka and the registry.
        model: the read model, as declared.
        key: the key.
        number: of the version whose states are shown; None: the live one.
        limit: how many first, and how many newest events are shown.
        masked: the fields of events to leave out.

    Raises NoVersionToExplainError, ReadModelError, KafkaUnavailableError.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        record = registry.read().get(model.name)
    shown = version_to_explain(record, model, number)
    assert record is not None  # noqa: S101 - or the version would not have been found
    compared = versions_to_compare(record, model, shown)

    def explain(ids_of: IdsOf) -> Explanation:
        logs: dict[str, KeyLog] = {}
        try:
            for version in (shown, *compared):
                topic = model.reading(version.source_topic).source_topic
                if topic not in logs:
                    logs[topic] = KeyLog(spark, settings, model.reading(topic), key, ids_of)
            return _explained(model, key, (shown, compared), logs, limit, tuple(masked))
        finally:
            for log in logs.values():
                log.close()

    return decoding(spark, explain)


class KeyLog:
    """The events of a key on one version of the source topic, and the part of the log that was read for them.

    since, until: offsets by partition. Only the key's partition is read if the key determines it.
    """

    def __init__(
        self, spark: SparkSession, settings: Settings, model: ReadModel, key: str, ids_of: IdsOf
    ) -> None:
        state = source_state(settings.kafka.bootstrap_servers, model.source_topic)
        self.model = model
        self.until = state.ends
        self.since = state.starts
        if is_record_key(spark, model):
            own = int(murmur2(key.encode(), len(self.until)))
            self.since = Offsets(
                {p: state.starts.of(p) if p == own else end for p, end in state.ends.items()}
            )
        records = decoded_records(
            spark, settings, model.events, self.until, self.since, ids_of=ids_of, with_written_at=True
        )
        found = without_short_names(of_key(model, good_events(records), key), model.event_schemas)
        self._cached = found.persist()
        self.events: DataFrame = with_short_names(self._cached, model.event_schemas)

    def close(self) -> None:
        """Release the events."""
        self._cached.unpersist()

    @property
    def parts(self) -> tuple[dict[str, int], dict[str, int]]:
        """The offsets from which and up to which each partition was read, for partitions of which anything was."""
        read = [p for p, end in self.until.items() if self.since.of(p) < end]
        return tuple({str(p): side.of(p) for p in read} for side in (self.since, self.until))  # type: ignore[return-value]  # two


def _explained(
    model: ReadModel,
    key: str,
    versions: tuple[Version, list[Version]],
    logs: dict[str, KeyLog],
    limit: int,
    masked: tuple[str, ...],
) -> Explanation:
    shown, compared = versions
    log = logs[model.reading(shown.source_topic).source_topic]
    own = counted_from(log.events, shown.starts)
    others = [_version(model, version, logs) for version in compared]
    revision = model.newest_fold_revision
    if revision not in {version.fold_revision for version in (shown, *compared)}:
        live = next((one for one in (shown, *compared) if one.stage is Stage.LIVE), shown)
        others.append(_next_version(model, revision, logs, live))
    read_from, read_until = log.parts
    return Explanation(
        model.name,
        key,
        datetime.now(UTC).isoformat(timespec="seconds"),
        _version(model, shown, logs),
        tuple(explained_events(log.model, shown.fold_revision, own, limit, masked)),
        tuple(others),
        read_from,
        read_until,
        sum(one.until.of(p) - one.since.of(p) for one in logs.values() for p in one.until),
        masked,
        _leaves(model),
    )


def _version(model: ReadModel, version: Version, logs: dict[str, KeyLog]) -> ExplainedVersion:
    log = logs[model.reading(version.source_topic).source_topic]
    found = folded_state(log.model, version.fold_revision, counted_from(log.events, version.starts))
    return ExplainedVersion(
        version.number,
        version.stage.value,
        version.fold_revision,
        log.model.source_topic,
        {str(p): offset for p, offset in version.starts.items()},
        found.event_count,
        found.state,
    )


def _next_version(
    model: ReadModel, revision: int, logs: dict[str, KeyLog], live: Version
) -> ExplainedVersion:
    """Return what the newest fold revision makes of the key, where no version is built with it: a rebuild starts where the live one does."""
    found = _version(model, replace(live, fold_revision=revision), logs)
    return replace(found, version=None, stage="")


def _leaves(model: ReadModel) -> str:
    if model.expires is None:
        return ""
    return "Keys of this read model expire: a key has no record once the model's newest item is much later than its own."


if __name__ == "__main__":
    main()
