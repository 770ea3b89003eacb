"""Why a rebuild, a rollback or a retirement was not done."""

from include.errors import FoldlakeError


class RequestError(FoldlakeError):
    """The request cannot be carried out: a field is missing, unknown or has an invalid value."""


class NoSlotsError(FoldlakeError):
    """The stream driver has no task slots for another version."""


class StaleRequestError(FoldlakeError):
    """Another version became live after the request was made, so the request no longer means what it meant."""


class StageTimeoutError(FoldlakeError):
    """What a stage waits for did not happen in time."""


class CleanUpIncompleteError(FoldlakeError):
    """Some of the versions that are due could not be retired, abandoned or removed."""


class QueryRefusedError(FoldlakeError):
    """The stream driver refuses to fold the candidate."""


class NothingToDoError(FoldlakeError):
    """The stage does not apply to this run."""
