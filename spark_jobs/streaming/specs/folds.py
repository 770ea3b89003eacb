"""The folds: one query for each active version of a read model, from its events to the state records on its changelog."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from include.declarations.read_model import ReadModel
from include.errors import SchemaError
from include.kafka.topics import changelog
from include.stream.checkpoints import checkpoint_path, query_name
from include.stream.slot_planning import SlotRank, shuffle_partitions
from include.versions.version_lock import version_lock
from include.versions.version_record import Stage, Version
from spark_jobs.folding.decode import SchemaIds
from spark_jobs.folding.fold_fingerprint import incompatibility, store_fingerprint
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.streaming.query_spec import QuerySpec, StartRefusedError
from spark_jobs.streaming.stream_context import StreamContext

# A writer that hands a version over ends within seconds; a query that does not get the lock is retried later.
LOCK_WAIT_S = 2.0
SLOT_RANKS = {
    Stage.LIVE: SlotRank.SERVING,
    Stage.CANDIDATE: SlotRank.CANDIDATE,
    Stage.PREVIOUS: SlotRank.PREVIOUS,
}


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return the fold of every active version in the version registry; raises KafkaUnavailableError."""
    records = context.versions.read()
    return [
        fold_spec(context, model, version)
        for model in context.models.values()
        if model.name in records
        for version in records[model.name].active
    ]


def fold_spec(context: StreamContext, model: ReadModel, version: Version) -> QuerySpec:
    """Return the fold of a version. Only a live version is essential."""
    name = query_name(model.name, version.number)
    fold = VersionFold(context, model, version)
    return QuerySpec(
        name=name,
        endpoints=context.endpoints(model.source_topic, version.changelog_topic, name),
        schemas=context.schemas(model.source_topic),
        records=fold.records,
        triggers=context.triggers,
        is_essential=version.stage is Stage.LIVE,
        prepare=fold.prepare,
        guard=fold.guard,
        shuffle_partitions=shuffle_partitions(context.settings),
        # Of two previous versions, the one replaced last comes first.
        slot_rank=(SLOT_RANKS.get(version.stage, SlotRank.CANDIDATE), -version.replaced_in),
    )


def catch_up_spec(context: StreamContext, model: ReadModel, version: Version, batch_events: int) -> QuerySpec:
    """Return the fold of a version as a rebuild runs it: in batches of `batch_events`, until it has caught up."""
    spec = fold_spec(context, model, version)
    triggers = replace(spec.triggers, catch_up_batch_events=batch_events, stop_when_caught_up=True)
    return replace(spec, triggers=triggers, is_essential=True)


class VersionFold:
    """What a version's query computes. `prepare` decides on the read model's fold; from then on it does not change."""

    def __init__(self, context: StreamContext, model: ReadModel, version: Version) -> None:
        self._context = context
        self._model = model
        self._version = version
        self._state_schema_id = 0

    def prepare(self) -> None:
        """Create the changelog and register the state schema, if the read model has the fold that the version was built with.

        Otherwise imports the module again, which may have it by now. Raises StartRefusedError where it does not: nothing is
        created then.
        """
        context, version = self._context, self._version
        self._model = self._compatible_model()
        context.ensure_topics([changelog(version.changelog_topic, context.settings.topics.partitions)])
        schema = self._model.state_schema_of(version.fold_revision)
        try:
            self._state_schema_id = context.schema_registry.register(version.changelog_topic, schema)
        except SchemaError as error:
            raise StartRefusedError(str(error)) from error

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the state records of the version."""
        return changelog_stream(
            source, self._model, self._version.fold_revision, schema_ids, self._state_schema_id
        )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Hold the version's lock, and note beside the checkpoint what its state is folded with."""
        model, version = self._model, self._version
        with version_lock(self._context.settings, model.name, version.number, wait_s=LOCK_WAIT_S):
            store_fingerprint(self._context.spark, self._checkpoint, model, version.fold_revision)
            yield

    @property
    def _checkpoint(self) -> str:
        return checkpoint_path(self._context.settings, self._model.name, self._version.number)

    def _compatible_model(self) -> ReadModel:
        model = self._context.models[self._model.name]
        if self._incompatibility(model) is None:
            return model
        model = self._context.reload_model(model.name)
        reason = self._incompatibility(model)
        if reason is not None:
            raise StartRefusedError(f"version {self._version.number} of {model.name}: {reason}")
        return model

    def _incompatibility(self, model: ReadModel) -> str | None:
        return incompatibility(self._context.spark, self._checkpoint, model, self._version.fold_revision)
