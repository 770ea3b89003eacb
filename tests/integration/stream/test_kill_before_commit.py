"""A driver killed in real-time mode before its first commit leaves a checkpoint from which another driver can catch up."""

from pathlib import Path

from include.settings import Settings
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, kill_jvm
from tests.support.unsupervised_driver import launch, stream_driver
from tests.support.waiting import wait_until


def test_driver_killed_in_real_time_mode_before_a_commit_can_catch_up_in_batches(
    stream_stack: Settings, tmp_path: Path
) -> None:
    source = EventSource(stream_stack, BALANCE.source_topic)
    ledger = Ledger(stream_stack)
    fresh = stream_stack.changed(checkpoint_dir=str(tmp_path))
    process = launch(fresh.changed(stream_catch_up_threshold_events=10**9, stream_real_time_interval_s=300))
    try:
        source.append(ledger.random_events(300))
        wait_until(lambda: ledger.is_folded(fresh), "folded in real time")
    finally:
        kill_jvm(fresh, process)
    commits = tmp_path / "balance" / "v1" / "commits"
    assert [path for path in commits.glob("*") if path.name.isdigit()] == []
    source.append(ledger.random_events(300))

    with stream_driver(fresh.changed(stream_catch_up_threshold_events=0)):
        wait_until(lambda: ledger.is_folded(fresh), "caught up")
        ledger.assert_exact(fresh)
