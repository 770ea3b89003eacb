"""A signal wakes the driver's loop, and a local JVM ends at once when its queries have stopped, unless the driver has failed."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.stream import query_transfer
from include.stream.driver_launch import WRITES_CACHE
from include.stream.query_transfer import HANDED_OVER, QueryTransfer
from spark_jobs.streaming import stream_driver
from spark_jobs.streaming.fold_transfer import FoldGiver
from spark_jobs.streaming.query_set import QuerySet
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.stream_driver import StreamDriver
from spark_jobs.streaming.supervised_query import QueryFailedError
from tests.support.query_specs import NO_CONSUMER, NO_SPARK


class Session:
    """In place of a Spark session: notes how it was ended."""

    def __init__(self, master: str = "local[4]") -> None:
        self.ended: list[object] = []
        self.sparkContext = SimpleNamespace(master=master)
        runtime = SimpleNamespace(halt=self.ended.append)
        lang = SimpleNamespace(Runtime=SimpleNamespace(getRuntime=lambda: runtime))
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=lang))

    def stop(self) -> None:
        """Note it."""
        self.ended.append("stopped")


@pytest.fixture(autouse=True)
def slow_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_driver, "POLL_INTERVAL_S", 3600.0)


def no_specs() -> list[QuerySpec]:
    return []


def driver_of(session: Session, home: Path, specs: Callable[[], list[QuerySpec]] = no_specs) -> StreamDriver:
    spark: Any = session
    return StreamDriver(spark, QuerySet(NO_SPARK, NO_CONSUMER, specs, 4), None, (), FoldGiver(home))


def status_after_signal(driver: StreamDriver) -> int:
    """Return the exit status after a signal, which the loop must notice while it waits."""
    timer = threading.Timer(0.2, driver.request_stop, (signal.SIGTERM, None))
    timer.start()
    status = driver.run()
    timer.join()
    return status


def test_a_signal_ends_the_wait_and_the_jvm(tmp_path: Path) -> None:
    session = Session()

    assert status_after_signal(driver_of(session, tmp_path)) == 0

    assert session.ended == [0]


def test_a_driver_that_has_passed_its_folds_says_so(tmp_path: Path) -> None:
    session = Session()
    query_transfer.begin(tmp_path, QueryTransfer(os.getppid(), to_pid=1))

    assert driver_of(session, tmp_path).run() == HANDED_OVER

    assert session.ended == [HANDED_OVER]


def test_spark_ends_as_usual_on_a_cluster(tmp_path: Path) -> None:
    session = Session("spark://127.0.0.1:7077")

    status_after_signal(driver_of(session, tmp_path))

    assert session.ended == ["stopped"]


def test_spark_ends_as_usual_when_its_archive_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WRITES_CACHE, "true")
    session = Session()

    status_after_signal(driver_of(session, tmp_path))

    assert session.ended == ["stopped"]


def test_a_driver_that_fails_does_not_end_with_success(tmp_path: Path) -> None:
    session = Session()

    def specs() -> list[QuerySpec]:
        raise QueryFailedError("a wrong fold")

    with pytest.raises(QueryFailedError):
        driver_of(session, tmp_path, specs).run()

    assert session.ended == ["stopped"]
