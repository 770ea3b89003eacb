"""The stages `promote` and `roll_back`: one record in the registry says which version is live."""

import logging
from datetime import UTC, datetime, timedelta
from functools import partial

from include.settings import Settings
from include.version_changes import change_live, promote, record_of, roll_back
from include.versions import ReadModelVersions, Stage, Version, VersionRegistry
from rebuild.plan import rollback_plan
from rebuild.request import RollbackRequest

LOG = logging.getLogger(__name__)


def promote_version(settings: Settings, read_model: str, number: int, grace_h: float) -> Version | None:
    """Make a candidate live; returns the version that it replaced, which is kept for `grace_h` hours.

    Raises PromotionLostError when somebody else changed the record meanwhile, VersionChangeError when it is no candidate.
    """
    after = datetime.now(UTC) + timedelta(hours=grace_h)
    return _make_live(settings, read_model, number, partial(promote, number=number, retire_live_after=after))


def roll_back_version(settings: Settings, read_model: str, number: int) -> Version | None:
    """Make a previous version live again; returns the version that it replaced.

    Raises PromotionLostError, VersionRetiredError, VersionAbandonedError, NotHandedOverError.
    """
    after = datetime.now(UTC) + timedelta(hours=settings.rebuild_grace_h)
    return _make_live(
        settings, read_model, number, partial(roll_back, number=number, retire_live_after=after)
    )


def choose_rollback(settings: Settings, request: RollbackRequest) -> int:
    """Return the version that a rollback goes to. Chosen once: where it is done, "the newest previous" is another one.

    Raises NothingToRollBackToError, UnknownVersionError.
    """
    registry = VersionRegistry(settings.bootstrap_servers, settings.replication_factor)
    try:
        return rollback_plan(record_of(registry, request.read_model), request)[0].version
    finally:
        registry.close()


def _make_live(
    settings: Settings, read_model: str, number: int, transition: "partial[ReadModelVersions]"
) -> Version | None:
    registry = VersionRegistry(settings.bootstrap_servers, settings.replication_factor)
    try:
        record = change_live(registry, read_model, transition)
    finally:
        registry.close()
    replaced = max(
        (v for v in record.versions if v.stage is Stage.PREVIOUS), key=lambda v: v.retire_after, default=None
    )
    LOG.info(
        "v%d of %s is live since revision %d of its record%s",
        number,
        read_model,
        record.revision,
        f"; v{replaced.number} is kept for a rollback until {replaced.retire_after}" if replaced else "",
    )
    return replaced
