r"""How a read model's versions may change: transitions as pure functions on the registry's record.

    BUILDING -> CANDIDATE -> LIVE <-> PREVIOUS -> RETIRED
        \----------\-> ABANDONED

Every transition is idempotent: given a record that already has its result, it returns the same object.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from include.errors import FoldlakeError
from include.kafka.topics import changelog_topic
from include.position import Offsets
from include.versions.version_record import UNFINISHED_STAGES, ReadModelVersions, Stage, Version

Transition = Callable[[ReadModelVersions], ReadModelVersions]


class VersionChangeError(FoldlakeError):
    """The registry's record does not allow this change."""


class UnknownVersionError(VersionChangeError):
    """The registry has no such read model, or no such version of it."""


class RebuildRunningError(VersionChangeError):
    """Another rebuild of the same read model is running."""


class VersionAbandonedError(VersionChangeError):
    """The version was abandoned; its state was removed."""


class RunAbandonedError(VersionAbandonedError):
    """The version that this rebuild has registered was abandoned."""


class VersionRetiredError(VersionChangeError):
    """The version is retired; its checkpoint, changelog and stores were removed."""


class NotHandedOverError(VersionChangeError):
    """The version is still being built: no node has loaded it."""


class NothingToRollBackToError(VersionChangeError):
    """There is no previous version."""


class VersionInUseError(VersionChangeError):
    """The version is live, or was promoted: it cannot be abandoned or retired."""


class PromotionLostError(VersionChangeError):
    """Another promotion or rollback was applied first."""


def register(
    record: ReadModelVersions,
    *,
    run_id: str,
    reason: str,
    fold_revision: int,
    now: datetime,
    source_topic: str | None = None,
    starts: Offsets | None = None,
) -> ReadModelVersions:
    """Add the next version, BUILDING, for the rebuild `run_id`. Numbers are never reused.

    source_topic: as in Version; None: that of the live version. starts: the offset of the first event of each partition that counts; None:
        that of the live version, if it folds the same topic.

    Raises RunAbandonedError when this rebuild's version was abandoned, RebuildRunningError when another rebuild is running.
    """
    own = record.of_run(run_id)
    if own is not None:
        if own.stage is Stage.ABANDONED:
            raise RunAbandonedError(
                f"{_name(record, own)} of run {run_id} was abandoned, and its leftovers were removed: start a new rebuild."
            )
        return record
    other = record.unfinished
    if other is not None:
        raise RebuildRunningError(
            f"The rebuild {other.run_id or 'without a run'} is building {_name(record, other)} ({other.reason}), so a second "
            f"one of {record.read_model} is refused: wait until it ends, or run `./foldlake rebuild {record.read_model} --abort`."
        )
    number = max(v.number for v in record.versions) + 1
    if source_topic is None:
        source_topic = "" if record.live is None else record.live.source_topic
    if starts is None:
        is_same = record.live is not None and record.live.source_topic == source_topic
        starts = record.live.starts if record.live is not None and is_same else Offsets()
    version = Version(
        number=number,
        stage=Stage.BUILDING,
        fold_revision=fold_revision,
        changelog_topic=changelog_topic(record.read_model, number),
        reason=reason,
        created_at=now.isoformat(),
        run_id=run_id,
        source_topic=source_topic,
        start_offsets=tuple(starts.of(partition) for partition in sorted(starts)),
    )
    return replace(record, versions=(*record.versions, version))


def hand_over(record: ReadModelVersions, number: int) -> ReadModelVersions:
    """Make a building version a candidate: from now on the stream driver folds it.

    Raises VersionAbandonedError or VersionRetiredError when it has ended.
    """
    version = require_not_ended(record, number)
    return (
        _with(record, replace(version, stage=Stage.CANDIDATE)) if version.stage is Stage.BUILDING else record
    )


def promote(
    record: ReadModelVersions, number: int, *, now: datetime, retire_live_after: datetime
) -> ReadModelVersions:
    """Make a candidate live; the version that was live becomes a previous one, kept until `retire_live_after`.

    Raises NotHandedOverError, VersionAbandonedError, VersionRetiredError, or VersionInUseError for a previous version,
    which only `roll_back` makes live again.
    """
    version = require_not_ended(record, number)
    if version.stage is Stage.BUILDING:
        raise NotHandedOverError(f"{_name(record, version)} is still being built: hand it over first.")
    if version.stage is Stage.PREVIOUS:
        raise VersionInUseError(
            f"{_name(record, version)} was promoted and later replaced: to make it live again, roll back to it."
        )
    return record if version.stage is Stage.LIVE else _make_live(record, version, now, retire_live_after)


def require_not_ended(record: ReadModelVersions, number: int) -> Version:
    """Return a version that is neither retired nor abandoned; raises VersionRetiredError, VersionAbandonedError, UnknownVersionError."""
    version = _known(record, number)
    if version.stage is Stage.RETIRED:
        raise VersionRetiredError(
            f"{_name(record, version)} is retired: its state is gone. A rebuild with fold revision {version.fold_revision} "
            "creates an equivalent version."
        )
    if version.stage is Stage.ABANDONED:
        raise VersionAbandonedError(f"{_name(record, version)} was abandoned: its state is gone.")
    return version


def replaced_last(record: ReadModelVersions) -> Version | None:
    """Return the version that was live before the live one; None when there is none, or it is retired."""
    previous = [v for v in record.versions if v.stage is Stage.PREVIOUS]
    return max(previous, key=lambda v: (v.replaced_in, v.number), default=None)


def rollback_target(record: ReadModelVersions) -> Version:
    """Return the version to which a rollback without a number goes; raises NothingToRollBackToError."""
    version = replaced_last(record)
    if version is None:
        raise NothingToRollBackToError(
            f"{record.read_model} has no previous version to roll back to: no other version was live before, or its grace time has ended."
        )
    return version


def roll_back(
    record: ReadModelVersions, number: int, *, now: datetime, retire_live_after: datetime, reason: str = ""
) -> ReadModelVersions:
    """Make a previous version live again, and store the reason with it; the version that was live becomes a previous one.

    Raises VersionRetiredError, VersionAbandonedError, or NotHandedOverError for a version that was never live.
    """
    version = require_not_ended(record, number)
    if version.stage in UNFINISHED_STAGES:
        raise NotHandedOverError(
            f"{_name(record, version)} was never live: its rebuild promotes it, not a rollback."
        )
    if version.stage is Stage.LIVE:
        return record
    return _make_live(record, replace(version, rollback_reason=reason), now, retire_live_after)


def retire(record: ReadModelVersions, number: int) -> ReadModelVersions:
    """Retire a previous version: it is no longer folded or loaded, so its leftovers can be removed.

    Raises VersionInUseError for a live version, NotHandedOverError for the version of a running rebuild.
    """
    version = _known(record, number)
    if version.stage in (Stage.RETIRED, Stage.ABANDONED):
        return record
    if version.stage is Stage.LIVE:
        raise VersionInUseError(
            f"{_name(record, version)} is live: promote or roll back to another one first."
        )
    if version.stage in UNFINISHED_STAGES:
        raise NotHandedOverError(f"{_name(record, version)} belongs to a rebuild: abandon it instead.")
    return _with(record, replace(version, stage=Stage.RETIRED))


def abandon(record: ReadModelVersions, number: int) -> ReadModelVersions:
    """Abandon a version that was never promoted. Raises VersionInUseError when it was promoted."""
    version = _known(record, number)
    if version.stage is Stage.ABANDONED:
        return record
    if version.stage not in UNFINISHED_STAGES:
        raise VersionInUseError(f"{_name(record, version)} was promoted already (it is {version.stage}).")
    return _with(record, replace(version, stage=Stage.ABANDONED))


def _make_live(
    record: ReadModelVersions, version: Version, now: datetime, retire_live_after: datetime
) -> ReadModelVersions:
    old = record.live
    if old is not None:
        previous = replace(
            old,
            stage=Stage.PREVIOUS,
            live_since="",
            retire_after=retire_live_after.astimezone(UTC).isoformat(),
            replaced_in=record.revision + 1,
            grace_s=(retire_live_after - now).total_seconds(),
        )
        record = _with(record, previous)
    live_since = now.astimezone(UTC).isoformat()
    promoted = replace(
        version, stage=Stage.LIVE, live_since=live_since, retire_after="", replaced_in=0, grace_s=None
    )
    return _with(record, promoted)


def _with(record: ReadModelVersions, version: Version) -> ReadModelVersions:
    return replace(
        record, versions=tuple(version if v.number == version.number else v for v in record.versions)
    )


def _known(record: ReadModelVersions, number: int) -> Version:
    version = record.version(number)
    if version is None:
        raise UnknownVersionError(
            f"{record.read_model} has no version {number}; its versions: {', '.join(str(v.number) for v in record.versions)}."
        )
    return version


def _name(record: ReadModelVersions, version: Version) -> str:
    return f"v{version.number} of {record.read_model}"
