"""Waiting and retrying: the first attempt is immediate, the last one is after the timeout."""

import time

import pytest

from include.waiting import retry, wait_for


def test_an_available_result_is_returned_without_a_pause() -> None:
    began_s = time.monotonic()
    assert wait_for(lambda: "found", timeout_s=0, poll_s=60) == "found"
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize("nothing", [None, False])
def test_none_and_false_time_out(nothing: bool | None) -> None:
    answers = iter([nothing, nothing, 0])
    assert wait_for(lambda: next(answers), timeout_s=10, poll_s=0.01) == 0
    assert wait_for(lambda: nothing, timeout_s=0.05, poll_s=0.01) is None


def test_the_time_waited_is_reported_at_intervals() -> None:
    reported: list[float] = []
    wait_for(lambda: False, timeout_s=0.5, poll_s=0.02, while_waiting=reported.append, log_interval_s=0.1)
    assert 1 <= len(reported) <= 5
    assert reported == sorted(reported)


class Flaky:
    """Fails `failures` times, then returns the number of calls."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self) -> int:
        """Fail or succeed."""
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return self.calls


def is_connection_error(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


def test_a_call_is_retried_until_it_succeeds() -> None:
    call = Flaky(3, ConnectionError())
    assert retry(call, retryable=is_connection_error, timeout_s=10, poll_s=0.01) == 4


def test_a_permanent_error_is_raised_immediately() -> None:
    call = Flaky(3, ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        retry(call, retryable=is_connection_error, timeout_s=10, poll_s=0.01)
    assert call.calls == 1


def test_after_the_timeout_the_last_error_is_raised() -> None:
    call = Flaky(1_000_000, ConnectionError("refused"))
    with pytest.raises(ConnectionError, match="refused"):
        retry(call, retryable=is_connection_error, timeout_s=0.1, poll_s=0.01)
    assert call.calls > 1
