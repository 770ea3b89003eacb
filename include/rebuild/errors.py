"""Why a rebuild, a rollback or a retirement was not done."""

from include.errors import FoldlakeError


class RequestError(FoldlakeError):
    """What was asked for cannot be done: a field is missing, unknown or has a value that cannot work."""


class NoSlotsError(FoldlakeError):
    """The stream driver has no task slots for one more version."""


class AskedTooLateError(FoldlakeError):
    """What was asked for was decided differently by somebody else before its turn came."""


class StageTimeoutError(FoldlakeError):
    """What a stage waits for did not come in time."""


class NotTidiedUpError(FoldlakeError):
    """Some of the versions that are due could not be retired, abandoned or removed."""


class QueryRefusedError(FoldlakeError):
    """The stream driver will not fold the candidate."""
