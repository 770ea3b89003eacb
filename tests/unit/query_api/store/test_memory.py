"""An in-memory store ends with its process; readers in other processes detect that, and connect to the next one."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from query_api.errors import StoreMissingError, StoreUnusableError
from query_api.store import replacement
from query_api.store.base import Binding, Change, ChangelogPosition, StoredRecord, StoreReader
from query_api.store.checks import CheckExtent
from query_api.store.directory import StoreDirectory
from query_api.store.memory import reader as memory_reader
from query_api.store.memory.backend import MemoryBackend
from query_api.store.memory.reader import MemoryReader
from query_api.store.memory.server import SOCKET_FILE
from tests.support.waiting import wait_until

BACKEND = MemoryBackend()
BINDING = Binding("cluster", "balance.v1.changelog", "topic id")
DEADLINE_S = 30.0
# Fills a store, prints "filled", and waits to be killed.
MATERIALIZER = """
import sys, time
from pathlib import Path
from query_api.store.base import Change, ChangelogPosition
from query_api.store.memory.backend import MemoryBackend
writer = MemoryBackend().open_writer(Path(sys.argv[1]), 1)
writer.commit({0: [Change(b"k", 1, 0, sys.argv[2].encode())]}, {0: ChangelogPosition(1, 0.0)}, {})
print("filled", flush=True)
time.sleep(60)
"""


@contextmanager
def store_in_another_process(path: Path, value: str = "v") -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process that serves a store with one record."""
    command = [sys.executable, "-c", MATERIALIZER, str(path), value]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"filled\n"
        try:
            yield process
        finally:
            process.kill()


def reaches(path: Path, value: bytes) -> Callable[[], bool]:
    return lambda: BACKEND.open_reader(path, 1).get(0, b"k") == StoredRecord(value, 1, 0)


def test_reader_of_a_killed_process_is_replaced_and_the_next_store_is_reached(path: Path) -> None:
    with store_in_another_process(path) as process:
        reader = BACKEND.open_reader(path, 1)
        assert reader.get(0, b"k") == StoredRecord(b"v", 1, 0)
        process.kill()
        process.wait()

        with pytest.raises(StoreMissingError):
            reader.get(0, b"k")
        assert reader.is_replaced()
        with pytest.raises(StoreMissingError):
            BACKEND.open_reader(path, 1)
        assert BACKEND.exists(path)
        assert "earlier process" in (BACKEND.begin_check(path, CheckExtent.OPENING).finding() or "")

    with store_in_another_process(path, "of the next process"):
        assert reaches(path, b"of the next process")()
        with pytest.raises(StoreMissingError):
            reader.get(0, b"k")


def test_reader_of_an_ended_store_does_not_read_from_its_successor(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = BACKEND.open_writer(path, 1)
    reader = BACKEND.open_reader(path, 1)
    first.close()
    second = BACKEND.open_writer(path, 1)
    second.commit({0: [Change(b"k", 1, 0, b"v")]}, {}, {})

    monkeypatch.setattr(replacement, "CHECK_INTERVAL_S", 0.0)
    for _ in range(3):
        with pytest.raises(StoreMissingError):
            reader.get(0, b"k")
    assert reader.is_replaced()
    assert reaches(path, b"v")()
    second.close()
    second.close()
    assert not BACKEND.exists(path)


def test_reader_detects_a_removed_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "CHECK_INTERVAL_S", 0.0)
    writer = BACKEND.open_writer(path, 1)
    reader = BACKEND.open_reader(path, 1)
    path.rename(path.with_name("elsewhere"))

    assert reader.is_replaced()
    assert not BACKEND.exists(path)
    writer.close()
    assert list(path.with_name("elsewhere").iterdir()) == []


def test_stopped_process_does_not_block_its_readers(path: Path) -> None:
    with store_in_another_process(path) as process:
        reader = BACKEND.open_reader(path, 1)
        process.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, "it stops", DEADLINE_S
        )
        began = time.monotonic()
        with pytest.raises(StoreMissingError, match="did not answer"):
            reader.get(0, b"k")
        with pytest.raises(StoreMissingError, match="did not answer"):
            reader.get(0, b"k")
        assert time.monotonic() - began < 5 * memory_reader.ANSWER_TIMEOUT_S

        process.send_signal(signal.SIGCONT)
        wait_until(lambda: _answers(reader), "it answers again", DEADLINE_S)


def _answers(reader: StoreReader) -> bool:
    try:
        return reader.get(0, b"k") is not None
    except StoreMissingError:
        return False


def test_many_threads_share_a_reader_and_its_connections(path: Path) -> None:
    with store_in_another_process(path) as process:
        reader = MemoryReader(path, answer_timeout_s=DEADLINE_S)
        found: list[StoredRecord | None] = []

        def read() -> None:
            found.extend(reader.get(0, b"k") for _ in range(20))

        threads = [threading.Thread(target=read) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)

        assert found == [StoredRecord(b"v", 1, 0)] * 20 * 64
        serving = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        assert serving <= memory_reader.MAX_CONNECTIONS + 2


def test_other_users_cannot_connect(path: Path) -> None:
    writer = BACKEND.open_writer(path, 1)

    assert (path / SOCKET_FILE).stat().st_mode & 0o777 == 0o600
    writer.close()


def test_store_with_a_path_longer_than_a_socket_address_is_served(path: Path) -> None:
    deep = path / ("long" * 30) / ("name" * 30)

    with store_in_another_process(deep):
        assert reaches(deep, b"v")()


@pytest.mark.parametrize("is_closed", [True, False])
def test_store_of_an_earlier_process_is_never_reused(tmp_path: Path, *, is_closed: bool) -> None:
    def fill(directory: StoreDirectory) -> None:
        store = directory.open_writer("balance", 1, 1, BINDING)
        store.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: ChangelogPosition(1, 0.0)}, {})
        if is_closed:
            directory.close_writer(store, "balance", 1)
        else:
            store.close()

    fill(StoreDirectory(tmp_path, BACKEND))
    directory = StoreDirectory(tmp_path, BACKEND)
    with pytest.raises(StoreUnusableError, match="rebuilt from the changelog"):
        directory.open_writer("balance", 1, 1, BINDING)
    assert directory.stored_versions() == [("balance", 1)]

    directory.discard("balance", 1)
    fill(directory)
