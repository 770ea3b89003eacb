"""Registration: the new versions are in the registry, and a second rebuild of one of their read models is rejected."""

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial

from include.declarations.read_model import ReadModel
from include.position import Offsets
from include.rebuild.errors import NoSlotsError, RequestError
from include.rebuild.request import RebuildRequest
from include.settings import KafkaConnection, StreamSettings
from include.stream.slot_planning import most_queries
from include.versions.registry import VersionRegistry, change_together, known_record
from include.versions.start_rule import start_offsets
from include.versions.transitions import Transition, register
from include.versions.version_record import UNFINISHED_STAGES, ReadModelVersions, Stage, Version

LOG = logging.getLogger(__name__)
# No run has this id: for a request that is only checked.
NO_RUN = "-"


def register_versions(
    registry: VersionRegistry,
    stream: StreamSettings,
    models: Mapping[str, ReadModel],
    request: RebuildRequest,
    starts: Mapping[str, Offsets],
    run_id: str,
) -> dict[str, Version]:
    """Register the versions of a rebuild, all or none, and return them by read model; every try of the same run returns the same ones.

    models: all declared read models, by name. starts: see `requested_starts`.

    Raises RequestError when all live versions fold the topic of the request already; RebuildRunningError, RunAbandonedError,
    NoSlotsError, UnknownVersionError.
    """
    transitions = permitted_transitions(registry.read(), stream, models, request, starts, run_id)
    records = change_together(registry, transitions)
    versions = {
        name: version for name, record in records.items() if (version := record.of_run(run_id)) is not None
    }
    for name, version in versions.items():
        LOG.info("registered v%d of %s for run %s", version.number, name, run_id)
    return versions


def permitted_transitions(
    records: Mapping[str, ReadModelVersions],
    stream: StreamSettings,
    models: Mapping[str, ReadModel],
    request: RebuildRequest,
    starts: Mapping[str, Offsets],
    run_id: str = NO_RUN,
) -> dict[str, Transition]:
    """Return the transition that registers each version; raises the errors of `register_versions` if one of them is refused now.

    records: all of the registry. run_id: by default, the request is only checked.
    """
    before = {name: known_record(records, name) for name in request.read_models}
    transitions: dict[str, Transition] = {
        name: partial(
            register,
            run_id=run_id,
            reason=request.reason,
            fold_revision=revision,
            now=datetime.now(UTC),
            source_topic=request.source_topic,
            starts=starts.get(name),
        )
        for name, revision in request.fold_revisions.items()
    }
    new = [name for name, record in before.items() if transitions[name](record) is not record]
    if new:
        _reject_folded_topic(request, before)
        check_slots(stream, records.values(), models, len(new))
    return transitions


def requested_starts(
    kafka: KafkaConnection,
    records: Mapping[str, ReadModelVersions],
    models: Mapping[str, ReadModel],
    request: RebuildRequest,
) -> dict[str, Offsets]:
    """Return by read model the first events that count, of the source topic of the live version; empty: those of the live version.

    records: those of the registry. Raises StartRuleError, UnknownVersionError, KafkaUnavailableError.
    """
    if request.start is None:
        return {}
    found = {}
    for name in request.read_models:
        live = known_record(records, name).live
        topic = models[name].reading("" if live is None else live.source_topic).source_topic
        starts = Offsets() if live is None else live.starts
        found[name] = start_offsets(kafka, topic, request.start, starts)
    return found


def _reject_folded_topic(request: RebuildRequest, records: Mapping[str, ReadModelVersions]) -> None:
    """Raise RequestError if all live versions fold the topic of the request."""
    topic = request.source_topic
    lives = [record.live for record in records.values()]
    if topic is not None and all(live is not None and live.source_topic == topic for live in lives):
        raise RequestError(
            f"The live version of {', '.join(records)} folds {topic} already: there is nothing to promote. "
            "`./foldlake rebuild` with the name of a read model builds one from the same topic."
        )


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
