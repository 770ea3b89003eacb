"""Registration of the new versions of all read models that fold a topic, at once."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from include.declarations.catalog import Catalog
from include.rebuild.errors import RequestError
from include.rebuild.registration import NO_RUN, check_slots
from include.rebuild.topic_versions.request import TopicRequest
from include.settings import Settings
from include.versions.changes import change_together, record_of
from include.versions.registry import VersionRegistry
from include.versions.transitions import Transition, register
from include.versions.version_record import ReadModelVersions, Version

LOG = logging.getLogger(__name__)


def register_together(
    settings: Settings, catalog: Catalog, request: TopicRequest, run_id: str
) -> dict[str, Version]:
    """Register a version of each read model that folds the new version of the topic; every try of the same run returns the same versions.

    Raises RequestError when all live versions fold it already; RebuildRunningError, RunAbandonedError, NoSlotsError, UnknownVersionError.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        before = [record_of(registry, name) for name in request.read_models]
        if not any(_own(record, run_id) for record in before):
            _check(settings, registry, catalog, request, before)
        after = change_together(
            registry, {record.read_model: _registering(catalog, request, run_id, record) for record in before}
        )
    versions = {name: version for name, record in after.items() if (version := _own(record, run_id))}
    for name, version in versions.items():
        LOG.info("registered v%d of %s, which folds %s", version.number, name, request.new_topic)
    return versions


def check_topic_registration(settings: Settings, catalog: Catalog, request: TopicRequest) -> None:
    """Raise the errors of `register_together` for a new run, without changing anything."""
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        before = [record_of(registry, name) for name in request.read_models]
        _check(settings, registry, catalog, request, before)
    for record in before:
        _registering(catalog, request, NO_RUN, record)(record)


def _check(
    settings: Settings,
    registry: VersionRegistry,
    catalog: Catalog,
    request: TopicRequest,
    before: Sequence[ReadModelVersions],
) -> None:
    if all(_folds(record, request.new_topic) for record in before):
        raise RequestError(
            f"The live version of {', '.join(request.read_models)} folds {request.new_topic} already: there is nothing to promote. "
            "`./foldlake rebuild` with the name of a read model builds one from the same topic."
        )
    check_slots(settings.stream, registry.read().values(), catalog.models, len(before))


def _registering(
    catalog: Catalog, request: TopicRequest, run_id: str, record: ReadModelVersions
) -> Transition:
    return partial(
        register,
        run_id=run_id,
        reason=request.reason,
        fold_revision=catalog.models[record.read_model].newest_fold_revision,
        now=datetime.now(UTC),
        source_topic=request.new_topic,
    )


def _own(record: ReadModelVersions, run_id: str) -> Version | None:
    return next((version for version in record.versions if version.run_id == run_id), None)


def _folds(record: ReadModelVersions, topic: str) -> bool:
    return record.live is not None and record.live.source_topic == topic
