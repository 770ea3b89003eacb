"""The stages `promote` and `roll_back`: one record in the registry says which version is live."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from include.rebuild.errors import AskedTooLateError
from include.rebuild.handover import hand_over_version
from include.rebuild.hydration import hydrate
from include.rebuild.plan import rollback_plan
from include.rebuild.request import RollbackRequest
from include.settings import Settings
from include.versions.registry import ReadModelVersions, Stage, Version, VersionRegistry
from include.versions.transitions import (
    change_live,
    promote,
    record_of,
    replaced_last,
    require_not_ended,
    roll_back,
)

LOG = logging.getLogger(__name__)
# A node or the driver may be restarting just now.
FIT_WITHIN_S = 60


def recheck_candidate(settings: Settings, read_model: str, number: int) -> None:
    """Look once more at what the candidate's stages before have found: somebody may have taken days to say yes.

    Raises QueryRefusedError, StageTimeoutError or VersionChangeError where the stream driver does not fold it any more, or a
    query node does not hold it.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        version = require_not_ended(record_of(registry, read_model), number)
    if version.stage is Stage.CANDIDATE:
        soon = settings.changed(rebuild_hydrate_timeout_s=FIT_WITHIN_S)
        hand_over_version(soon, read_model, number)
        hydrate(soon, read_model, number)


def promote_version(settings: Settings, read_model: str, number: int, grace_h: float) -> Version | None:
    """Make a candidate live; returns the version that it replaced, which is kept for `grace_h` hours.

    Raises PromotionLostError when somebody else changed the record meanwhile, VersionChangeError when it is no candidate.
    """
    return _make_live(settings, read_model, number, promote, grace_h)


def roll_back_version(settings: Settings, read_model: str, number: int) -> Version | None:
    """Make a previous version live again; returns the version that it replaced.

    Raises PromotionLostError, VersionRetiredError, VersionAbandonedError, NotHandedOverError.
    """
    return _make_live(settings, read_model, number, roll_back, settings.rebuild.grace_h)


def choose_rollback(settings: Settings, request: RollbackRequest, asked_at: datetime) -> int:
    """Return the version that a rollback goes to. Chosen once: where it is done, the version replaced last is another one.

    asked_at: when somebody asked for it. Without a version in the request, what was meant is the version before the one
        that was live then.

    Raises NothingToRollBackToError, UnknownVersionError, or AskedTooLateError where another version has become live since.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        record = record_of(registry, request.read_model)
    number = rollback_plan(record, request)[0].version
    live = record.live
    if request.version is None and live is not None and live.live_since:
        since = datetime.fromisoformat(live.live_since)
        if since > asked_at:
            raise AskedTooLateError(
                f"Nothing was rolled back: v{live.number} of {request.read_model} became live at {since:%H:%M:%S} UTC, after this "
                f"was asked for at {asked_at:%H:%M:%S}. Look at `./foldlake versions`; if it shall be v{number} now, name it."
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
