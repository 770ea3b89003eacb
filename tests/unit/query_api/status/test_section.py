"""A section is read in the background, once for all processes, and keeps what it knew when a later reading fails."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from include.boot_clock import boot_s
from include.errors import KafkaUnavailableError
from query_api.status import sections as module
from query_api.status.sections import Section, SectionSource
from tests.support.waiting import wait_until

WAIT_S = 5.0


def section(folder: Path, read: Callable[[], object], max_age_s: float = 3600.0) -> Section:
    return Section(SectionSource("lake", read, max_age_s), folder)


def test_the_first_request_waits_for_the_data(tmp_path: Path) -> None:
    found = section(tmp_path, lambda: [1, 2]).current(WAIT_S)

    assert (found["data"], found["error"]) == ([1, 2], None)
    assert found["as_of"] is not None
    assert 0 <= found["age_s"] < WAIT_S


def test_a_reading_that_takes_long_does_not_hold_the_request_up(tmp_path: Path) -> None:
    may_end = threading.Event()
    slow = section(tmp_path, lambda: may_end.wait(WAIT_S))

    assert slow.current(0.05) == {"as_of": None, "age_s": None, "error": None, "data": None}

    may_end.set()
    assert slow.current(WAIT_S)["data"] is True


def test_all_processes_of_a_node_share_one_reading(tmp_path: Path) -> None:
    readings: list[int] = []

    def read() -> int:
        readings.append(1)
        return len(readings)

    first, second = section(tmp_path, read), section(tmp_path, read)

    assert [first.current(WAIT_S)["data"], second.current(WAIT_S)["data"], first.current(0)["data"]] == [
        1
    ] * 3
    assert len(readings) == 1


def test_what_is_too_old_is_answered_and_read_again_in_the_background(tmp_path: Path) -> None:
    readings = iter(range(1000))
    may_read_again = threading.Event()

    def read() -> int:
        reading = next(readings)
        if reading:
            may_read_again.wait(WAIT_S)
        return reading

    changing = section(tmp_path, read, max_age_s=0.0)

    assert changing.current(WAIT_S)["data"] == 0
    may_read_again.set()
    wait_until(lambda: changing.current(0)["data"] > 0, "it is read again")


def test_a_request_waits_for_what_nobody_has_asked_for_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter(range(1000))
    changing = section(tmp_path, lambda: next(values), max_age_s=1.0)
    assert changing.current(WAIT_S)["data"] == 0

    monkeypatch.setattr(module, "boot_s", lambda: boot_s() + 60)

    assert changing.current(WAIT_S)["data"] == 1


def test_a_failure_keeps_what_was_known_and_says_why(tmp_path: Path) -> None:
    answers: list[object] = [KafkaUnavailableError("Kafka does not answer."), "known"]

    def read() -> object:
        answer = answers.pop() if answers else KafkaUnavailableError("Kafka does not answer.")
        if isinstance(answer, Exception):
            raise answer
        return answer

    failing = section(tmp_path, read, max_age_s=0.0)
    before = failing.current(WAIT_S)
    wait_until(lambda: failing.current(0)["error"], "the second reading has failed")

    after = failing.current(0)
    assert (after["data"], after["error"]) == ("known", "Kafka does not answer.")
    assert after["as_of"] == before["as_of"]


def test_an_unexpected_error_names_its_kind_and_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty: dict[str, str] = {}
    broken = section(tmp_path, lambda: empty["absent"])

    wait_until(lambda: broken.current(0)["error"], "it has failed")

    assert broken.current(0)["error"] == "KeyError: 'absent'. The node's log has the traceback."
    assert "cannot read the section lake" in caplog.text


def test_data_is_shown_also_when_its_file_cannot_be_written(tmp_path: Path) -> None:
    found = section(tmp_path / "absent" / "\0", lambda: "data")

    assert (
        found.current(0.2)["data"] is None
    )  # no lock can be taken there: nothing is read, and nothing fails
