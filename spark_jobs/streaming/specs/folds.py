"""Folds: one query per active version of a read model, from its events to the state records on its changelog."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from include.declarations.read_model import ReadModel
from include.errors import SchemaError
from include.kafka.schema_ids import SchemaIds
from include.position import Offsets
from include.stream.checkpoints import checkpoint_path, query_name
from include.stream.folded_offsets import folded_offsets
from include.stream.slot_planning import SlotRank, query_slots, shuffle_partitions
from include.versions.registry import record_of
from include.versions.transitions import require_not_ended
from include.versions.version_lock import lock_path, version_lock
from include.versions.version_record import Stage, Version
from spark_jobs.folding.fold_fingerprint import has_exact_sums, incompatibility, store_fingerprint
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.streaming.query_spec import QuerySpec, StartRefusedError, TriggerSettings
from spark_jobs.streaming.stream_context import StreamContext
from spark_jobs.streaming.workers.driver_worker import DriverWorker
from spark_jobs.streaming.workers.expiry_sweeper import ExpirySweeper

# The previous writer of a version exits within seconds of its handover; a query that cannot get the lock is retried.
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


def driver_workers(context: StreamContext) -> list[DriverWorker]:
    """Return a sweeper for each read model whose items expire; none is running yet."""
    models = context.models.values()
    return [
        ExpirySweeper(context.settings, model, model.expires) for model in models if model.expires is not None
    ]


def fold_spec(context: StreamContext, model: ReadModel, version: Version) -> QuerySpec:
    """Return the fold of a version. Only the fold of a live version is essential."""
    model = model.reading(version.source_topic, version.starts)
    name = query_name(model.name, version.number)
    stream, partitions = context.settings.stream, model.partitions(context.settings.topics)
    fold = VersionFold(context, model, version)
    return QuerySpec(
        name=name,
        endpoints=context.endpoints(model.source_topic, version.changelog_topic, name),
        schemas=context.schemas(model.source_topic),
        records=fold.records,
        triggers=_triggers(context.triggers, model),
        starts=model.starts,
        is_essential=version.stage is Stage.LIVE,
        prepare=fold.prepare,
        guard=fold.guard,
        lock=lock_path(context.settings.home, model.name, version.number),
        written=fold.written,
        has_watermark=model.items_leave,
        shuffle_partitions=shuffle_partitions(stream, partitions),
        # Compactions, checks and the status read its commits: they must not wait for long.
        idle_events=0,
        task_slots=query_slots(stream, partitions),
        # Of several previous versions, the most recently replaced one comes first.
        slot_rank=(SLOT_RANKS.get(version.stage, SlotRank.CANDIDATE), -version.replaced_in),
    )


def _triggers(triggers: TriggerSettings, model: ReadModel) -> TriggerSettings:
    """Return the triggers of a read model's folds: a batch has one record for each key that changed in it."""
    if model.emit_every is None:
        return replace(triggers, batches_only=model.is_in_batches)
    interval_ms = round(model.emit_every.total_seconds() * 1000)
    return replace(triggers, batches_only=True, batch_interval_ms=interval_ms)


def catch_up_spec(context: StreamContext, model: ReadModel, version: Version, batch_events: int) -> QuerySpec:
    """Return the fold of a version for a rebuild: it runs in batches of `batch_events` until it has caught up."""
    spec = fold_spec(context, model, version)
    triggers = replace(spec.triggers, catch_up_batch_events=batch_events, stop_when_caught_up=True)
    return replace(spec, triggers=triggers, is_essential=True)


class VersionFold:
    """The computation of a version's query. `prepare` selects the read model's fold, which does not change afterwards."""

    def __init__(self, context: StreamContext, model: ReadModel, version: Version) -> None:
        self._context = context
        self._model = model
        self._version = version
        self._state_schema_id = 0

    def prepare(self) -> None:
        """Create the changelog and register the state schema, if the read model has the fold that the version was built with.

        Otherwise reloads the module, to which the fold may have been added. Raises StartRefusedError, and creates nothing,
        if the module still lacks it; and if the registry rejects a schema.
        """
        context, version = self._context, self._version
        self._model = self._compatible_model()
        context.ensure_topics([self._model.changelog(version.changelog_topic, context.settings.topics)])
        schema = self._model.state_schema_of(version.fold_revision)
        try:
            context.register_event_types(self._model)
            self._state_schema_id = context.schema_registry.register(version.changelog_topic, schema)
        except SchemaError as error:
            raise StartRefusedError(str(error)) from error

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the state records of the version."""
        return changelog_stream(
            source,
            self._model,
            self._version.fold_revision,
            schema_ids,
            self._state_schema_id,
            self._model.partitions(self._context.settings.topics),
            is_exact=has_exact_sums(self._context.spark, self._checkpoint),
        )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Hold the version's lock, and store the fold's fingerprint beside the checkpoint.

        Raises VersionAbandonedError, and stores nothing, if a version that is being built has been abandoned meanwhile: whoever
        removes what it leaves holds the lock.
        """
        model, version = self._model, self._version
        with version_lock(self._context.settings.home, model.name, version.number, wait_s=LOCK_WAIT_S):
            if version.stage is Stage.BUILDING:
                require_not_ended(record_of(self._context.versions, model.name), version.number)
            store_fingerprint(self._context.spark, self._checkpoint, model, version.fold_revision)
            yield

    def written(self) -> Offsets:
        """Return the source offsets after the newest events in the changelog."""
        schema = self._model.state_schema_of(self._version.fold_revision)
        partitions = self._model.partitions(self._context.settings.topics)
        return folded_offsets(self._context.consumer, self._version.changelog_topic, partitions, schema)

    @property
    def _checkpoint(self) -> str:
        return checkpoint_path(self._context.settings.checkpoints, self._model.name, self._version.number)

    def _compatible_model(self) -> ReadModel:
        version = self._version
        model = self._context.models[self._model.name].reading(version.source_topic, version.starts)
        if self._incompatibility(model) is None:
            return model
        model = self._context.reload_model(model.name).reading(version.source_topic, version.starts)
        reason = self._incompatibility(model)
        if reason is not None:
            raise StartRefusedError(f"version {version.number} of {model.name}: {reason}")
        return model

    def _incompatibility(self, model: ReadModel) -> str | None:
        return incompatibility(self._context.spark, self._checkpoint, model, self._version.fold_revision)
