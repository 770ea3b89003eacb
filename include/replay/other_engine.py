"""Why a check needs another engine than the one that runs it."""

from include.errors import FoldlakeError


class OtherEngineError(FoldlakeError):
    """This engine cannot check; the message says why."""
