"""A standby driver waits for its turn; any other driver does not."""

import threading
from pathlib import Path

import pytest

from include.stream.driver_launch import TURN_FILE, is_standby, wait_for_turn


def test_a_driver_that_has_the_lock_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TURN_FILE, raising=False)

    assert not is_standby()
    wait_for_turn()


def test_a_standby_waits_for_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = tmp_path / "turn"
    monkeypatch.setenv(TURN_FILE, str(turn))
    assert is_standby()
    waiting = threading.Thread(target=wait_for_turn)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()

    turn.touch()
    waiting.join(10)

    assert not waiting.is_alive()
    assert not is_standby()
