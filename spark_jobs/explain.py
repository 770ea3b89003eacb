"""Application: reads the events of one key from the log and folds them step by step. Writes nothing but its result."""

from collections.abc import Iterable

from confluent_kafka import murmur2
from pyspark.sql import DataFrame, SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, write_atomically
from include.kafka.topic_state import source_state
from include.position import Offsets
from include.settings import Settings
from include.versions.explanation import ExplainedEvent, Explanation, failure_json
from include.versions.key_explanation import ExplainArguments, FoldedState, VersionsOfKey, explain_key
from spark_jobs.folding.decode import good_events
from spark_jobs.folding.expressions.columns import with_short_names, without_short_names
from spark_jobs.folding.key_columns import is_record_key
from spark_jobs.folding.key_events import counted_from, explained_events, folded_state, of_key
from spark_jobs.folding.replay import IdsOf, decoded_records, decoding
from spark_jobs.runtime.lake_job import run_lake_job


def main() -> None:
    """Run under spark-submit."""
    arguments = ExplainArguments.parse(__doc__)

    def job(spark: SparkSession, settings: Settings) -> None:
        model = read_model(arguments.read_model, settings.declaration_folders)
        try:
            found = explanation(
                spark,
                settings,
                model,
                arguments.key,
                arguments.version,
                arguments.events,
                arguments.masked(model),
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
    versions = VersionsOfKey.of(settings.kafka_connection, model, number)

    def explain(ids_of: IdsOf) -> Explanation:
        def open_log(reading: ReadModel) -> SparkKeyLog:
            return SparkKeyLog(spark, settings, reading, key, ids_of)

        return explain_key(model, key, versions, open_log, limit, masked)

    return decoding(spark, explain)


class SparkKeyLog:
    """The events of a key in a frame: see KeyLog."""

    def __init__(
        self, spark: SparkSession, settings: Settings, model: ReadModel, key: str, ids_of: IdsOf
    ) -> None:
        state = source_state(settings.kafka_connection, model.source_topic)
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
        self._events: DataFrame = with_short_names(self._cached, model.event_schemas)

    def folded_state(self, revision: int, starts: Offsets) -> FoldedState:
        """See KeyLog."""
        return folded_state(self.model, revision, counted_from(self._events, starts))

    def explained_events(
        self, revision: int, starts: Offsets, limit: int, masked: Iterable[str]
    ) -> list[ExplainedEvent]:
        """See KeyLog."""
        events = counted_from(self._events, starts)
        return explained_events(self.model, revision, events, limit, masked)

    def close(self) -> None:
        """See KeyLog."""
        self._cached.unpersist()


if __name__ == "__main__":
    main()
