"""The audit log: one JSON object a line, whatever a client sends; private, rotated, and not filled by refused requests."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from include.access.audit import BACKUPS, FILE, REFUSED_PER_S, AuditLog


def entries(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / FILE).read_text(encoding="utf-8").splitlines()]


def test_a_record_says_who_did_what_and_when(tmp_path: Path) -> None:
    request = AuditLog(tmp_path, "node-1").record("command", "key:till", outcome="accepted", credential=None)

    (entry,) = entries(tmp_path)
    assert entry.pop("at").startswith("20")
    assert entry == {
        "action": "command",
        "who": "key:till",
        "request": request,
        "node": "node-1",
        "outcome": "accepted",
    }
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_client_cannot_write_a_line_of_its_own(tmp_path: Path) -> None:
    sent = 'a"}\n{"action": "command", "who": "operator"}\r\u2028\x1b[31m' + "x" * 10_000

    AuditLog(tmp_path).refused("anonymous", path=sent)

    (entry,) = entries(tmp_path)
    assert entry["path"] == sent[: len(entry["path"])]
    assert (tmp_path / FILE).read_bytes().isascii()
    assert (tmp_path / FILE).stat().st_size < 2000


def test_refused_requests_do_not_fill_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1.0]
    monkeypatch.setattr("include.access.audit.time.monotonic", lambda: now[0])
    log = AuditLog(tmp_path)

    for _ in range(1000):
        log.refused("anonymous")
    now[0] = 2.0
    log.refused("anonymous")

    found = entries(tmp_path)
    assert len(found) == REFUSED_PER_S + 1
    assert found[-1]["left_out"] == 1000 - REFUSED_PER_S
    assert "left_out" not in found[-2]


def test_the_file_is_rotated_and_several_writers_lose_no_record(tmp_path: Path) -> None:
    logs = [AuditLog(tmp_path, max_bytes=20_000) for _ in range(4)]

    with ThreadPoolExecutor(len(logs)) as pool:
        list(pool.map(lambda n: logs[n % len(logs)].record("command", "key:a", number=n), range(300)))

    files = sorted((tmp_path / FILE).parent.glob("audit.log*"))
    numbers = [json.loads(line)["number"] for file in files for line in file.read_text().splitlines()]
    assert sorted(numbers) == list(range(300))
    assert 1 < len(files) <= BACKUPS + 1
    assert all(file.stat().st_size <= 20_000 for file in files)


def test_the_oldest_file_is_removed(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_bytes=500)

    for number in range(40):
        log.record("command", "key:a", number=number)

    assert len(list((tmp_path / FILE).parent.glob("audit.log*"))) == BACKUPS + 1


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "logs").write_text("no folder")

    AuditLog(tmp_path).record("command", "key:a")

    assert "audit.log cannot be written" in caplog.text
