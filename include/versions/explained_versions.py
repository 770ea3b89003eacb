"""Which versions of a read model an explanation of a key shows and compares."""

from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.versions.version_record import ReadModelVersions, Version


class NoVersionToExplainError(FoldlakeError):
    """The read model has no such version, or the module no longer has its fold."""


def version_to_explain(record: ReadModelVersions | None, model: ReadModel, number: int | None) -> Version:
    """Return the version with this number, or the live one; raises NoVersionToExplainError.

    record: the version registry's, None if it has none of the read model.
    """
    if record is None or (number is None and record.live is None):
        raise NoVersionToExplainError(
            f"{model.name} has no live version yet: the stream driver registers version 1 when it first starts."
        )
    found = record.live if number is None else record.version(number)
    if found is None:
        known = ", ".join(str(version.number) for version in record.versions)
        raise NoVersionToExplainError(
            f"{model.name} has no version {number}; known: {known}. See ./foldlake versions."
        )
    if found.fold_revision not in model.folds:
        raise NoVersionToExplainError(
            f"{model.name} v{found.number} was folded by revision {found.fold_revision}, which its module no longer has "
            f"(only {', '.join(map(str, sorted(model.folds)))})."
        )
    return found


def versions_to_compare(record: ReadModelVersions, model: ReadModel, shown: Version) -> list[Version]:
    """Return the other versions that have not ended and whose fold the module has, in ascending order."""
    others = {
        version.number: version for version in (*record.active, record.unfinished) if version is not None
    }
    others.pop(shown.number, None)
    return [others[number] for number in sorted(others) if others[number].fold_revision in model.folds]
