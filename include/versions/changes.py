"""Applies transitions of versions to the version registry, by compare-and-set."""

from collections.abc import Mapping

from include.errors import RevisionConflictError
from include.versions.registry import VersionRegistry
from include.versions.transitions import PromotionLostError, Transition, UnknownVersionError
from include.versions.version_record import ReadModelVersions, Version

# Two writers resolve a conflict at the first retry; more than a few conflicts have another cause.
ATTEMPTS = 10


def record_of(registry: VersionRegistry, read_model: str) -> ReadModelVersions:
    """Return the registry's record of a read model; raises UnknownVersionError when it has none."""
    record = registry.read().get(read_model)
    if record is None:
        raise UnknownVersionError(
            f"The version registry has no {read_model!r} yet: the stream driver registers version 1 at its first start."
        )
    return record


def change(registry: VersionRegistry, read_model: str, transition: Transition) -> ReadModelVersions:
    """Apply a transition by compare-and-set; after a conflict, read the record again and retry.

    Raises the transition's errors, UnknownVersionError, or RevisionConflictError after ATTEMPTS conflicts.
    """
    return change_together(registry, {read_model: transition})[read_model]


def change_together(
    registry: VersionRegistry, transitions: Mapping[str, Transition]
) -> dict[str, ReadModelVersions]:
    """Apply a transition to each of several read models, all of them or none, as `change` does for one; return their records."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            before = {name: record_of(registry, name) for name in transitions}
            after = {name: transition(before[name]) for name, transition in transitions.items()}
            changed = [
                (record, before[name].revision)
                for name, record in after.items()
                if record is not before[name]
            ]
            if not changed:
                return after
            appended = registry.compare_and_set_all(changed)
            return after | {record.read_model: record for record in appended}
        except RevisionConflictError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def change_live(
    registry: VersionRegistry, read_model: str, transition: Transition, expected_live: int | None = None
) -> ReadModelVersions:
    """Apply a promotion or rollback by compare-and-set; of two concurrent ones, one fails.

    expected_live: the number of the version that the caller expects to replace, 0 for none; None for the one that is live now.

    Raises PromotionLostError when another version became live since; after any other concurrent change, the transition is
    applied to the changed record.
    """
    before = _number(record_of(registry, read_model).live) if expected_live is None else expected_live
    return change(registry, read_model, unless_replaced(transition, before))


def unless_replaced(transition: Transition, expected_live: int) -> Transition:
    """Return a promotion or rollback that raises PromotionLostError if another version than the expected one is live."""

    def decide(record: ReadModelVersions) -> ReadModelVersions:
        changed = transition(record)
        if changed is not record and _number(record.live) != expected_live:
            raise PromotionLostError(
                f"Nothing was promoted: v{_number(record.live)} of {record.read_model} replaced v{expected_live} "
                "in the meantime. Check `./foldlake versions`, then decide again."
            )
        return changed

    return decide


def _number(version: Version | None) -> int:
    return 0 if version is None else version.number
