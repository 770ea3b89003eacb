"""Promotion and rollback: one record in the registry makes another version live."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from include.access.audit import AuditLog, operator_name
from include.declarations.catalog import Catalog
from include.files import FileLockedError
from include.rebuild.errors import (
    GateClosedError,
    QueryRefusedError,
    RollbackRefusedError,
    StaleRequestError,
)
from include.rebuild.gate import GateResult, look_at_gate, wait_at_gate
from include.rebuild.grace_time import grace_left_s
from include.rebuild.request import RollbackRequest
from include.settings import Settings
from include.versions.registry import (
    VersionRegistry,
    change_live,
    change_together,
    record_of,
    unless_replaced,
)
from include.versions.transitions import promote, replaced_last, require_not_ended, roll_back, rollback_target
from include.versions.version_record import ReadModelVersions, Stage, Version

LOG = logging.getLogger(__name__)
# Long enough for a node or the driver to restart.
GATE_TIMEOUT_S = 60.0
# Of a version that folds another topic than the live one. A fold of what its routes write last may appear in a commit only.
TOPIC_GATE_TIMEOUT_S = 180.0


def promote_versions(
    settings: Settings, catalog: Catalog, versions: Mapping[str, int], grace_h: float
) -> dict[str, int]:
    """Wait at the gate of each candidate, then make all of them live in one transaction.

    Returns the numbers of the versions that they replaced, by read model, which are kept for `grace_h` hours.
    versions: read model -> number of its candidate.

    Raises GateClosedError, QueryRefusedError, PromotionLostError when another version became live in the meantime,
    VersionChangeError when one is not a candidate: then none is live.
    """
    transitions = {}
    now = datetime.now(UTC)
    for name, number in versions.items():
        compared_with = _recheck_candidate(settings, catalog, name, number)
        making_live = partial(
            promote, number=number, now=now, retire_live_after=now + timedelta(hours=grace_h)
        )
        # Not a candidate any more: an earlier try has promoted it, and the transition changes nothing.
        transitions[name] = (
            making_live if compared_with is None else unless_replaced(making_live, compared_with)
        )
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        records = change_together(registry, transitions)
    _record(settings.home, "promoted", records.values())
    return _begin_grace_times(settings.home, records.values())


def _recheck_candidate(settings: Settings, catalog: Catalog, read_model: str, number: int) -> int | None:
    """Check again the results of the preceding stages, as the approval may have taken days, and that no events would disappear.

    Returns the number of the live version that the candidate was compared with; None when it is not a candidate.

    Raises GateClosedError with what it lacks, QueryRefusedError when the stream driver refuses it, VersionChangeError when it
    has ended.
    """
    version, live = _version(settings.kafka.bootstrap_servers, read_model, number)
    if version.stage is not Stage.CANDIDATE:
        return None
    is_same_topic = live is None or live.source_topic == version.source_topic
    timeout_s = GATE_TIMEOUT_S if is_same_topic else TOPIC_GATE_TIMEOUT_S
    found = wait_at_gate(settings, catalog, read_model, number, timeout_s)
    if not found.missing:
        return found.live
    message = f"v{number} of {read_model} was not promoted. After {timeout_s:.0f} s it lacks: {found}."
    raise QueryRefusedError(message) if found.is_refused else GateClosedError(message)


def check_rollback(
    settings: Settings, catalog: Catalog, read_model: str, number: int, *, force: bool
) -> GateResult | None:
    """Check that a previous version may become live again, under the same conditions as a candidate.

    force: do not wait, and return what it lacks. Returns None when it is not a previous version.

    Raises RollbackRefusedError with what it lacks, unless `force`; VersionChangeError when it has ended.
    """
    version, _ = _version(settings.kafka.bootstrap_servers, read_model, number)
    if version.stage is not Stage.PREVIOUS:
        return None
    if force:
        found = look_at_gate(settings, catalog, read_model, number)
        LOG.warning("v%d of %s becomes live by force; it lacks: %s", number, read_model, found)
        return found
    found = wait_at_gate(settings, catalog, read_model, number, GATE_TIMEOUT_S)
    if found.missing:
        raise RollbackRefusedError(
            f"Nothing was rolled back. After {GATE_TIMEOUT_S:.0f} s, v{number} of {read_model} lacks: {found}. Correct that and "
            "repeat the rollback, or repeat it with force, and lookups get the records as they are."
        )
    return found


def roll_back_version(
    settings: Settings, read_model: str, number: int, expected_live: int | None = None, reason: str = ""
) -> None:
    """Make a previous version live again.

    expected_live: the number of the version that it was compared with. reason: stored with the version.

    Raises PromotionLostError, VersionRetiredError, VersionAbandonedError, NotHandedOverError.
    """
    now = datetime.now(UTC)
    retire_live_after = now + timedelta(hours=settings.rebuild.grace_h)
    transition = partial(
        roll_back, number=number, now=now, retire_live_after=retire_live_after, reason=reason
    )
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        record = change_live(registry, read_model, transition, expected_live)
    _record(settings.home, "rolled-back", [record], reason=reason)
    _begin_grace_times(settings.home, [record])


def choose_rollback(bootstrap_servers: str, request: RollbackRequest, requested_at: datetime) -> int:
    """Return the number of the version that a rollback makes live. Call it only once: the rollback itself changes the result.

    requested_at: when the rollback was requested. A request without a version means the version before the one that was
        live then.

    Raises NothingToRollBackToError, StaleRequestError when another version became live since; for the version that the request names,
    UnknownVersionError, VersionRetiredError, VersionAbandonedError, or NotHandedOverError.
    """
    with VersionRegistry(bootstrap_servers) as registry:
        record = record_of(registry, request.read_model)
    if request.version is not None:
        now = datetime.now(UTC)
        # Refused now rather than by the rollback itself.
        roll_back(record, request.version, now=now, retire_live_after=now)
        return request.version
    number, live = rollback_target(record).number, record.live
    if live is not None and live.live_since:
        since = datetime.fromisoformat(live.live_since)
        if since > requested_at:
            raise StaleRequestError(
                f"Nothing was rolled back: v{live.number} of {request.read_model} became live at {since:%H:%M:%S} UTC, after "
                f"this rollback was requested at {requested_at:%H:%M:%S}. Check `./foldlake versions`; to roll back to "
                f"v{number}, request version {number}."
            )
    return number


def _record(home: Path, action: str, records: Iterable[ReadModelVersions], **fields: object) -> None:
    """Record in the audit log which versions are live."""
    audit, who = AuditLog(home), operator_name()
    for record in records:
        version = None if record.live is None else record.live.number
        audit.record(
            action, who, read_model=record.read_model, version=version, position=record.revision, **fields
        )


def _begin_grace_times(home: Path, records: Iterable[ReadModelVersions]) -> dict[str, int]:
    """Begin to count the grace times of the versions that have just been replaced; returns their numbers, by read model."""
    replaced = {}
    for record in records:
        old, live = replaced_last(record), record.live
        LOG.info(
            "v%d of %s is live since revision %d of its record%s",
            0 if live is None else live.number,
            record.read_model,
            record.revision,
            f"; v{old.number} is kept for a rollback until {old.retire_after}" if old else "",
        )
        if old is None:
            continue
        replaced[record.read_model] = old.number
        # If it cannot now, the first sweep of the DAG `retirement` begins.
        with suppress(OSError, FileLockedError):
            grace_left_s(home, record.read_model, old)
    return replaced


def _version(bootstrap_servers: str, read_model: str, number: int) -> tuple[Version, Version | None]:
    """Return a version that has not ended, and the live one."""
    with VersionRegistry(bootstrap_servers) as registry:
        record = record_of(registry, read_model)
    return require_not_ended(record, number), record.live
