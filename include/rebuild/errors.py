"""The errors of rebuilds, rollbacks and retirements."""

from include.errors import FoldlakeError


class RequestError(FoldlakeError):
    """The request cannot be carried out: a field is missing, unknown or has an invalid value."""


class NoSlotsError(FoldlakeError):
    """The stream driver has no task slots for another version."""


class StaleRequestError(FoldlakeError):
    """Another version became live after the request was made, so the request no longer has the intended effect."""


class StageTimeoutError(FoldlakeError):
    """A stage timed out waiting for a condition."""


class GateClosedError(StageTimeoutError):
    """A candidate cannot become live yet: the message names what it lacks."""


class RollbackRefusedError(FoldlakeError):
    """The version that a rollback would make live lacks something; the message names it. Nothing was changed."""


class CleanUpIncompleteError(FoldlakeError):
    """Some of the versions that are due could not be retired, abandoned or removed."""


class QueryRefusedError(FoldlakeError):
    """The stream driver cannot fold the candidate and rejects it."""


class NothingToDoError(FoldlakeError):
    """The stage does not apply to this run."""


class NoRebuildError(FoldlakeError):
    """There is no running rebuild to abort."""
