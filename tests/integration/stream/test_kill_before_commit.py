"""A driver killed in real-time mode before its first commit leaves a checkpoint from which its standby catches up.

The standby writes nothing while the driver runs.
"""

from pathlib import Path

from include.settings import Settings
from include.stream.driver_launch import READY
from stack.launchers.stream_driver import running
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource
from tests.support.unsupervised_driver import SharedDriver, end, launch, log_path
from tests.support.waiting import wait_until


def test_standby_of_a_driver_killed_before_its_first_commit_catches_up_in_batches(
    stream_stack: Settings, driver: SharedDriver, tmp_path: Path
) -> None:
    driver.stop()
    settings = stream_stack.changed(checkpoint_dir=str(tmp_path))
    source = EventSource(settings, BALANCE.source_topic)
    ledger = Ledger(settings)
    in_real_time = {"stream_catch_up_threshold_events": 10**9, "stream_real_time_interval_s": 300}
    first = launch(settings.changed(**in_real_time))
    wait_until(lambda: running(settings.home) is not None, "the driver has the lock")
    standby = launch(settings.changed(stream_catch_up_threshold_events=0), "--standby")
    try:
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(settings), "the driver folds in real time")
        wait_until(lambda: READY in log_path(settings).read_text(), "the standby is ready")
        holder = running(settings.home)
        assert holder is not None
        assert holder.pid == first.pid
        # The next commit would be minutes later.
        commits = tmp_path / "balance" / "v1" / "commits"
        assert [path for path in commits.glob("*") if path.name.isdigit()] == []

        first.kill()
        first.wait()
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(settings), "the standby catches up")

        ledger.assert_exact(settings)
        holder = running(settings.home)
        assert holder is not None
        assert holder.pid == standby.pid
    finally:
        end(settings, first)
        end(settings, standby)
