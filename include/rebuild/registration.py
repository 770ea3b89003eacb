"""The stage `register_candidate`: the new version is in the registry, and no second rebuild of its read model begins."""

import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from include.declarations.read_model import load_read_models
from include.rebuild.errors import NoSlotsError
from include.rebuild.plan import PlanStage, described, rebuild_plan
from include.rebuild.request import RebuildRequest
from include.settings import Settings
from include.stream.slot_planning import most_queries
from include.versions.registry import UNFINISHED_STAGES, ReadModelVersions, Stage, Version, VersionRegistry
from include.versions.transitions import change, register

LOG = logging.getLogger(__name__)


def register_candidate(settings: Settings, request: RebuildRequest, run_id: str) -> Version:
    """Enter the rebuild's version in the registry and return it; the same one at every try of the same run.

    Raises RebuildRunningError, VersionAbandonedError, NoSlotsError, UnknownVersionError.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        plan: tuple[PlanStage, ...] = ()

        def decide(record: ReadModelVersions) -> ReadModelVersions:
            nonlocal plan
            plan = rebuild_plan(record, request)
            changed = register(
                record,
                run_id=run_id,
                reason=request.reason,
                fold_revision=request.fold_revision,
                now=datetime.now(UTC),
            )
            if changed is not record:
                models = load_read_models(settings.read_models_dir)
                records = registry.read() | {record.read_model: record}
                check_slots(settings, records.values(), models)
            return changed

        record = change(registry, request.read_model, decide)
    version = next(v for v in record.versions if v.run_id == run_id)
    LOG.info(
        "registered v%d of %s for run %s; the plan:\n%s",
        version.number,
        request.read_model,
        run_id,
        described(plan),
    )
    return version


def check_slots(settings: Settings, records: Iterable[ReadModelVersions], models: Collection[str]) -> None:
    """Raise NoSlotsError unless the stream driver has task slots for one version more.

    models: the names of the read models that there are modules of: versions of others are in the registry, and not folded.
    """
    records = tuple(record for record in records if record.read_model in models)
    queries = sum(
        len([v for v in record.versions if v.is_active or v.stage in UNFINISHED_STAGES]) for record in records
    )
    slots = most_queries(settings, len(models))
    if queries < slots:
        return
    previous = [
        f"v{v.number} of {record.read_model}"
        for record in records
        for v in record.versions
        if v.stage is Stage.PREVIOUS
    ]
    raise NoSlotsError(
        f"The stream driver has task slots for {slots} queries, and {queries} versions use them: a further one would get "
        f"none. Retire a previous version first ({', '.join(previous) or 'there is none'}): ./foldlake retire, or raise "
        "FOLDLAKE_STREAM_SPARE_QUERIES and run ./foldlake up."
    )
