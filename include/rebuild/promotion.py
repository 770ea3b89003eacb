"""Promotion and rollback: one record in the registry makes another version live."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from include.rebuild.errors import StaleRequestError
from include.rebuild.handover import hand_over_version
from include.rebuild.hydration import hydrate_version
from include.rebuild.request import RollbackRequest
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.transitions import (
    change_live,
    promote,
    record_of,
    replaced_last,
    require_not_ended,
    roll_back,
    rollback_target,
)
from include.versions.version_record import ReadModelVersions, Stage, Version

LOG = logging.getLogger(__name__)
# Long enough for a node or the driver to restart.
RECHECK_TIMEOUT_S = 60


def recheck_candidate(settings: Settings, read_model: str, number: int) -> None:
    """Check again the results of the preceding stages: the approval may have taken days.

    Raises QueryRefusedError, StageTimeoutError or VersionChangeError when the stream driver no longer folds the candidate, or
    a query node has not loaded it.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        version = require_not_ended(record_of(registry, read_model), number)
    if version.stage is Stage.CANDIDATE:
        brief = settings.changed(rebuild_hydrate_timeout_s=RECHECK_TIMEOUT_S)
        hand_over_version(brief, read_model, number)
        hydrate_version(brief, read_model, number)


def promote_version(settings: Settings, read_model: str, number: int, grace_h: float) -> Version | None:
    """Make a candidate live; returns the version that it replaced, which is kept for `grace_h` hours.

    Raises PromotionLostError when another version became live in the meantime, VersionChangeError when it is not a candidate.
    """
    return _make_live(settings, read_model, number, promote, grace_h)


def roll_back_version(settings: Settings, read_model: str, number: int) -> Version | None:
    """Make a previous version live again; returns the version that it replaced.

    Raises PromotionLostError, VersionRetiredError, VersionAbandonedError, NotHandedOverError.
    """
    return _make_live(settings, read_model, number, roll_back, settings.rebuild.grace_h)


def choose_rollback(bootstrap_servers: str, request: RollbackRequest, requested_at: datetime) -> int:
    """Return the number of the version that a rollback makes live. Call it only once: the rollback itself changes the result.

    requested_at: when the rollback was requested. A request without a version means the version before the one that was
        live then.

    Raises NothingToRollBackToError, UnknownVersionError, or StaleRequestError when another version became live since.
    """
    with VersionRegistry(bootstrap_servers) as registry:
        record = record_of(registry, request.read_model)
    if request.version is not None:
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
) -> Version | None:
    now = datetime.now(UTC)
    after = now + timedelta(hours=grace_h)
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        record = change_live(
            registry, read_model, partial(transition, number=number, now=now, retire_live_after=after)
        )
    replaced = replaced_last(record)
    LOG.info(
        "v%d of %s is live since revision %d of its record%s",
        number,
        read_model,
        record.revision,
        f"; v{replaced.number} is kept for a rollback until {replaced.retire_after}" if replaced else "",
    )
    return replaced
