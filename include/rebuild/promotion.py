"""Promotion and rollback: one record in the registry makes another version live."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

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
from include.versions.changes import change_live, record_of
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote, replaced_last, require_not_ended, roll_back, rollback_target
from include.versions.version_record import ReadModelVersions, Stage, Version

LOG = logging.getLogger(__name__)
# Long enough for a node or the driver to restart.
GATE_TIMEOUT_S = 60.0


def recheck_candidate(
    settings: Settings, read_model: str, number: int, timeout_s: float = GATE_TIMEOUT_S
) -> int | None:
    """Check again the results of the preceding stages, as the approval may have taken days, and that no events would disappear.

    Returns the number of the live version that the candidate was compared with; None when it is not a candidate.

    Raises GateClosedError with what it lacks, QueryRefusedError when the stream driver refuses it, VersionChangeError when it
    has ended.
    """
    if _stage(settings, read_model, number) is not Stage.CANDIDATE:
        return None
    found = wait_at_gate(settings, read_model, number, timeout_s)
    if not found.missing:
        return found.live
    message = f"v{number} of {read_model} was not promoted. After {timeout_s:.0f} s it lacks: {found}."
    raise QueryRefusedError(message) if found.is_refused else GateClosedError(message)


def check_rollback(settings: Settings, read_model: str, number: int, *, force: bool) -> GateResult | None:
    """Check that a previous version may become live again, under the same conditions as a candidate.

    force: do not wait, and return what it lacks. Returns None when it is not a previous version.

    Raises RollbackRefusedError with what it lacks, unless `force`; VersionChangeError when it has ended.
    """
    if _stage(settings, read_model, number) is not Stage.PREVIOUS:
        return None
    if force:
        found = look_at_gate(settings, read_model, number)
        LOG.warning("v%d of %s becomes live by force; it lacks: %s", number, read_model, found)
        return found
    found = wait_at_gate(settings, read_model, number, GATE_TIMEOUT_S)
    if found.missing:
        raise RollbackRefusedError(
            f"Nothing was rolled back. After {GATE_TIMEOUT_S:.0f} s, v{number} of {read_model} lacks: {found}. Correct that and "
            "repeat the rollback, or repeat it with force, and lookups get the records as they are."
        )
    return found


def promote_version(
    settings: Settings, read_model: str, number: int, grace_h: float, expected_live: int | None = None
) -> Version | None:
    """Make a candidate live; returns the version that it replaced, which is kept for `grace_h` hours.

    expected_live: the number of the version that it was compared with.

    Raises PromotionLostError when another version became live in the meantime, VersionChangeError when it is not a candidate.
    """
    return _make_live(settings, read_model, number, promote, grace_h, expected_live)


def roll_back_version(
    settings: Settings, read_model: str, number: int, expected_live: int | None = None, reason: str = ""
) -> Version | None:
    """Make a previous version live again; returns the version that it replaced. `expected_live` as for `promote_version`.

    reason: stored with the version. Raises PromotionLostError, VersionRetiredError, VersionAbandonedError, NotHandedOverError.
    """
    transition = partial(roll_back, reason=reason)
    return _make_live(settings, read_model, number, transition, settings.rebuild.grace_h, expected_live)


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


def _make_live(
    settings: Settings,
    read_model: str,
    number: int,
    transition: Callable[..., ReadModelVersions],
    grace_h: float,
    expected_live: int | None,
) -> Version | None:
    now = datetime.now(UTC)
    after = now + timedelta(hours=grace_h)
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        record = change_live(
            registry,
            read_model,
            partial(transition, number=number, now=now, retire_live_after=after),
            expected_live=expected_live,
        )
    replaced = replaced_by(settings, record)
    LOG.info(
        "v%d of %s is live since revision %d of its record%s",
        number,
        read_model,
        record.revision,
        f"; v{replaced.number} is kept for a rollback until {replaced.retire_after}" if replaced else "",
    )
    return replaced


def replaced_by(settings: Settings, record: ReadModelVersions) -> Version | None:
    """Return the version that the live one has replaced, if any, whose grace time begins to count."""
    replaced = replaced_last(record)
    if replaced is not None:
        # If it cannot now, the first sweep of the DAG `retirement` begins.
        with suppress(OSError, FileLockedError):
            grace_left_s(settings.home, record.read_model, replaced)
    return replaced


def _stage(settings: Settings, read_model: str, number: int) -> Stage:
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        return require_not_ended(record_of(registry, read_model), number).stage
