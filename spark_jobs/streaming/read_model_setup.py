"""Creates what the read models need before their first query: topics, event schemas, and a first version of each."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from include.declarations.read_model import ReadModel
from include.declarations.route import Route
from include.errors import RevisionConflictError, SchemaError, SettingsError
from include.kafka.topics import PROGRESS_TOPIC, changelog, partition_count
from include.versions.version_record import first_version
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


def set_up_read_models(context: StreamContext) -> None:
    """Create the topics of every read model and route, register their event types, and create version 1 of a model without one.

    Idempotent. If the registry rejects a schema of a read model or route, the others continue: its queries are refused when they are
    prepared. Raises SettingsError when a source topic's number of partitions differs from the declared one,
    KafkaUnavailableError, RegistryUnavailableError.
    """
    context.versions.ensure_topic()
    context.ensure_topics([changelog(PROGRESS_TOPIC, 1)])
    known = context.versions.read()
    for route in context.catalog.routes.values():
        _ensure_route_topics(context, route)
    for model in context.models.values():
        _ensure_source_topics(context, model)
        with _reporting_rejection(f"read model {model.name}"):
            context.register_event_types(model)
        context.schemas(model.source_topic)
        if model.name not in known:
            _create_first_version(context, model)


def _ensure_route_topics(context: StreamContext, route: Route) -> None:
    """Create a route's topics, and register the event types that it reads and writes: what reads its output can start before it."""
    topics = context.settings.topics
    context.ensure_topics(route.topics(topics))
    wanted = {
        route.source_topic: route.source_partitions(topics),
        route.output_topic: route.output_partitions(topics),
    }
    for topic, partitions in wanted.items():
        found = partition_count(context.admin, topic)
        if found != partitions:
            raise SettingsError(
                f"Topic {topic} of route {route.versioned_name} has {found} partitions instead of {partitions}: set FOLDLAKE_PARTITIONS, or the "
                f"topic's options in the route, to {found}."
            )
    with _reporting_rejection(f"route {route.versioned_name}"):
        context.register_event_types(route)
        for schema in route.written_schemas:
            context.schema_registry.register(route.output_topic, schema)
    context.schemas(route.source_topic)


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
