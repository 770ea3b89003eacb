"""Registration: the new version is in the registry, and a second rebuild of its read model is rejected."""

import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from functools import partial

from include.declarations.load import load_catalog, read_model
from include.position import Offsets
from include.rebuild.errors import NoSlotsError
from include.rebuild.request import RebuildRequest
from include.settings import Settings, StreamSettings
from include.stream.slot_planning import most_queries
from include.versions.changes import change, record_of
from include.versions.registry import VersionRegistry
from include.versions.start_rule import start_offsets
from include.versions.transitions import register
from include.versions.version_record import UNFINISHED_STAGES, ReadModelVersions, Stage, Version

LOG = logging.getLogger(__name__)
# No run has this id: for a request that is only checked.
NO_RUN = "-"


def register_candidate(settings: Settings, request: RebuildRequest, run_id: str) -> Version:
    """Register the rebuild's version and return it; every try of the same run returns the same version.

    Raises RebuildRunningError, RunAbandonedError, NoSlotsError, UnknownVersionError.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        record = change(registry, request.read_model, partial(_register, settings, registry, request, run_id))
    version = next(v for v in record.versions if v.run_id == run_id)
    LOG.info("registered v%d of %s for run %s", version.number, request.read_model, run_id)
    return version


def check_registration(settings: Settings, registry: VersionRegistry, request: RebuildRequest) -> None:
    """Raise the errors of `register_candidate` for a new run, without changing anything."""
    _register(settings, registry, request, NO_RUN, record_of(registry, request.read_model))


def _register(
    settings: Settings,
    registry: VersionRegistry,
    request: RebuildRequest,
    run_id: str,
    record: ReadModelVersions,
) -> ReadModelVersions:
    changed = register(
        record,
        run_id=run_id,
        reason=request.reason,
        fold_revision=request.fold_revision,
        now=datetime.now(UTC),
        starts=_starts(settings, request, record),
    )
    if changed is not record:
        models = load_catalog(settings.declaration_folders).models
        records = registry.read() | {record.read_model: record}
        check_slots(settings.stream, records.values(), models)
    return changed


def _starts(settings: Settings, request: RebuildRequest, record: ReadModelVersions) -> Offsets | None:
    """Return the first events that count, of the source topic of the live version; None: those of the live version."""
    if request.start is None:
        return None
    live, model = record.live, read_model(request.read_model, settings.declaration_folders)
    topic = model.reading("" if live is None else live.source_topic).source_topic
    starts = Offsets() if live is None else live.starts
    return start_offsets(settings.kafka.bootstrap_servers, topic, request.start, starts)


def check_slots(
    stream: StreamSettings, records: Iterable[ReadModelVersions], models: Collection[str], new: int = 1
) -> None:
    """Raise NoSlotsError unless the stream driver has task slots for this number of new versions.

    models: the names of the declared read models. The registry may have versions of others, which are not folded.
    """
    records = tuple(record for record in records if record.read_model in models)
    queries = sum(
        len([v for v in record.versions if v.is_active or v.stage in UNFINISHED_STAGES]) for record in records
    )
    slots = most_queries(stream, len(models))
    if queries + new <= slots:
        return
    previous = [
        f"v{v.number} of {record.read_model}"
        for record in records
        for v in record.versions
        if v.stage is Stage.PREVIOUS
    ]
    raise NoSlotsError(
        f"The stream driver has task slots for {slots} queries, and {queries} versions use them: no slot is left for "
        f"{'another version' if new == 1 else f'{new} others'}. Retire a previous version ({', '.join(previous) or 'there is none'}) with ./foldlake retire, or raise "
        "FOLDLAKE_STREAM_SPARE_QUERIES and run ./foldlake up."
    )
