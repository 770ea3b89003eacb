"""A standby driver writes nothing while the driver runs, and takes over when it is killed."""

from pathlib import Path

from include.settings import Settings
from include.stream.standby import READY
from stack.launchers.stream_driver import running
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource
from tests.support.unsupervised_driver import end, launch, log_path
from tests.support.waiting import wait_until


def test_standby_takes_over_from_a_killed_driver_and_is_exact(stream_stack: Settings, tmp_path: Path) -> None:
    settings = stream_stack.changed(checkpoint_dir=str(tmp_path))
    source = EventSource(settings, BALANCE.source_topic)
    ledger = Ledger(settings)
    driver = launch(settings)
    wait_until(lambda: running(settings.home) is not None, "the driver has the lock")
    standby = launch(settings, "--standby")
    try:
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(settings), "the driver folds")
        wait_until(lambda: READY in log_path(settings).read_text(), "the standby is ready")
        holder = running(settings.home)
        assert holder is not None
        assert holder.pid == driver.pid

        driver.kill()
        driver.wait()
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(settings), "the standby folds")

        ledger.assert_exact(settings)
        holder = running(settings.home)
        assert holder is not None
        assert holder.pid == standby.pid
    finally:
        end(settings, driver)
        end(settings, standby)
