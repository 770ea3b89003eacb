"""A body that lasts ends when its credential is not valid any more, and what it used is released."""

from collections.abc import Iterator

import pytest

from query_api import shared_file
from query_api.http.access import lasting_body
from query_api.http.access.lasting_body import LastingBody
from query_api.http.changes import change_stream


class Parts:
    """Endless parts."""

    def __init__(self) -> None:
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        """Return the parts."""
        while True:
            yield b"part"

    def close(self) -> None:
        """Note the call."""
        self.is_closed = True


def test_it_ends_once_the_credential_is_not_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting_body, "CHECK_S", 0.0)
    validity = iter([True, True, False])
    parts = Parts()
    body = LastingBody(parts, lambda: next(validity))

    assert list(body) == [b"part", b"part"]
    body.close()
    assert parts.is_closed


def test_a_short_body_is_complete_and_needs_no_close() -> None:
    body = LastingBody([b"a", b"b"], lambda: False)

    assert list(body) == [b"a", b"b"]
    body.close()


def test_a_stream_without_changes_ends_within_a_second_of_the_revocation() -> None:
    # Until the stream has something to send, twice if the first time comes too early, and until the worker sees the changed keys.
    latest_s = change_stream.CHECK_S + min(lasting_body.CHECK_S, change_stream.CHECK_S) + shared_file.CHECK_S

    assert latest_s < 0.9
