"""The body of a response that may last, such as a stream of changes: it ends when the credential of its request is not valid any more."""

import time
from collections.abc import Callable, Iterable, Iterator

# Between two checks; a stream without changes passes an empty part on more often.
CHECK_S = 0.25


class LastingBody:
    """The parts of a body, up to the time at which `is_valid` is false.

    A client of a stream then connects again, and is refused.
    """

    def __init__(self, parts: Iterable[bytes], is_valid: Callable[[], bool]) -> None:
        self._parts = parts
        self._is_valid = is_valid

    def __iter__(self) -> Iterator[bytes]:
        """Return the parts."""
        checked_s = time.monotonic()
        for part in self._parts:
            now_s = time.monotonic()
            if now_s - checked_s >= CHECK_S:
                if not self._is_valid():
                    return
                checked_s = now_s
            yield part

    def close(self) -> None:
        """Close the body, as WSGI demands."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()
