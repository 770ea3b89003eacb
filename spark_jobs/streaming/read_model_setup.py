"""Creates what the read models need before their first query: topics, event schemas, and a first version of each."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.errors import RevisionConflictError, SchemaError, SettingsError
from include.kafka.topics import PROGRESS_TOPIC, changelog, partition_count
from include.versions.version_record import first_version
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


def set_up_read_models(context: StreamContext) -> None:
    """Create the topics of every read model and flow, register their event types, and create version 1 of a model without one.

    Idempotent. If the registry rejects a schema of a read model or flow, the others continue: its queries are refused when they are
    prepared. Raises SettingsError when a source topic's number of partitions differs from the declared one,
    KafkaUnavailableError, RegistryUnavailableError.
    """
    context.versions.ensure_topic()
    context.ensure_topics([changelog(PROGRESS_TOPIC, 1)])
    known = context.versions.read()
    for flow in context.catalog.flows:
        _ensure_flow_topics(context, flow)
    for model in context.models.values():
        _ensure_source_topics(context, model)
        with _reporting_rejection(f"read model {model.name}"):
            context.register_event_types(model)
        context.schemas(model.source_topic)
        if model.name not in known:
            _create_first_version(context, model)


def _ensure_flow_topics(context: StreamContext, flow: Flow) -> None:
    """Create a flow's topics, and register the event types that it reads and writes: what reads its output can start before it."""
    topics = context.settings.topics
    context.ensure_topics(flow.topics(topics))
    wanted = {
        flow.source_topic: flow.partitions(topics),
        flow.output_topic: flow.output_partitions(topics),
    }
    for topic, partitions in wanted.items():
        found = partition_count(context.admin, topic)
        if found != partitions:
            raise SettingsError(
                f"Topic {topic} of {flow} has {found} partitions instead of {partitions}: set FOLDLAKE_PARTITIONS, or the "
                f"topic's options in its declaration, to {found}."
            )
    with _reporting_rejection(str(flow)):
        context.register_event_types(flow)
        for schema in flow.written_schemas:
            context.schema_registry.register(flow.output_topic, schema)
    context.schemas(flow.source_topic)


@contextmanager
def _reporting_rejection(declaration: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        LOG.error("%s: %s", declaration, error)  # noqa: TRY400 - its message is complete


def _ensure_source_topics(context: StreamContext, model: ReadModel) -> None:
    wanted = model.partitions(context.settings.topics)
    context.ensure_topics(model.source_topics(context.settings.topics))
    found = partition_count(context.admin, model.source_topic)
    if found != wanted:
        declared = (
            f"the read model {model.name} declares" if model.topic.partitions else "FOLDLAKE_PARTITIONS is"
        )
        message = (
            f"Topic {model.source_topic} has {found} partitions, but {declared} {wanted}: "
            f"set it to {found}. The number of partitions of a version's checkpoint and changelog cannot change."
        )
        raise SettingsError(message)


def _create_first_version(context: StreamContext, model: ReadModel) -> None:
    newest = context.catalog.newest_topic(model.source_topic)
    record = first_version(
        model.name, model.newest_fold_revision, "" if newest == model.source_topic else newest
    )
    try:
        context.versions.compare_and_set(record, expected_revision=0)
    except RevisionConflictError:
        LOG.info("another process created the first version of %s", model.name)
        return
    LOG.info("created version 1 of %s as the live version", model.name)
