"""What the read models need before their first query: topics, event schemas, and a first version of each."""

import logging

from include.declarations.read_model import ReadModel
from include.errors import RevisionConflictError, SettingsError
from include.kafka.topics import PROGRESS_TOPIC, changelog, partition_count, source_topics
from include.versions.version_record import first_version
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


def set_up_read_models(context: StreamContext) -> None:
    """Create the topics of every read model, register its event types, and create version 1 where there is no version.

    Raises SettingsError when a source topic has another number of partitions than the settings, KafkaUnavailableError,
    RegistryUnavailableError. May be repeated.
    """
    context.versions.ensure_topic()
    context.ensure_topics([changelog(PROGRESS_TOPIC, 1)])
    known = context.versions.read()
    for model in context.models.values():
        _ensure_source_topics(context, model)
        context.register_event_types(model)
        context.schemas(model.source_topic)
        if model.name not in known:
            _create_first_version(context, model)


def _ensure_source_topics(context: StreamContext, model: ReadModel) -> None:
    wanted = context.settings.topics.partitions
    context.ensure_topics(source_topics(model.source_topic, wanted))
    found = partition_count(context.admin, model.source_topic)
    if found != wanted:
        message = (
            f"Topic {model.source_topic} has {found} partitions, but FOLDLAKE_PARTITIONS is {wanted}: "
            f"set it to {found}. A version's checkpoint and changelog keep the number that they started with."
        )
        raise SettingsError(message)


def _create_first_version(context: StreamContext, model: ReadModel) -> None:
    record = first_version(model.name, model.newest_fold_revision)
    try:
        context.versions.compare_and_set(record, expected_revision=0)
    except RevisionConflictError:
        LOG.info("another process created the first version of %s", model.name)
        return
    LOG.info("created version 1 of %s, live", model.name)
