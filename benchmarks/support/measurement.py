"""Measures the stream at one rate of events: the latency of each event, and the processor time that it takes.

The latency of an event is the time from its production to its state record's arrival at the broker: the changelog has the broker's
timestamps here, so nothing observes the stream while it is measured.
"""

from dataclasses import dataclass

from benchmarks.support.changelog_times import event_times
from benchmarks.support.moment import moment
from benchmarks.support.report import machine_busy_s, percentile
from benchmarks.support.steady_load import SteadyLoad
from include.settings import Settings
from include.status.measurement import read_stream_status
from tests.support.waiting import wait_until

# After the rate has changed, before it is measured.
SETTLE_S = 5
DRAIN_S = 180.0


@dataclass(frozen=True)
class Measurement:
    """The stream at one rate.

    latencies_ms: of each event, in ascending order; a single 0 at a rate of 0. cpu, machine: processor time of the driver and of all
    processes, in seconds a second. behind: the number of events that were not folded at the end. commits: of all queries.
    """

    latencies_ms: list[float]
    cpu: float
    machine: float
    behind: int
    commits: int

    def percentile_ms(self, share: float) -> float:
        """Return a percentile of the latencies; `share` is from 0 to 1."""
        return percentile(self.latencies_ms, share)


def measure_rate(
    settings: Settings, load: SteadyLoad, driver_pid: int, events_per_s: int, seconds: int
) -> Measurement:
    """Produce at this rate for so long, and wait until every event is folded."""
    load.run(events_per_s, SETTLE_S)
    begin, busy_s = moment(settings, driver_pid), machine_busy_s()
    load.run(events_per_s, seconds)
    end, busy_s = moment(settings, driver_pid), machine_busy_s() - busy_s
    behind = read_stream_status(settings).events_behind or 0
    wait_until(
        lambda: read_stream_status(settings).events_behind == 0, f"caught up after {events_per_s}/s", DRAIN_S
    )
    latencies = sorted(event.latency_ms for event in event_times(settings, begin.ends, end.ends))
    return Measurement(
        latencies or [0.0],
        begin.cpu_share_until(end),
        busy_s / (end.at_s - begin.at_s),
        behind,
        end.commits - begin.commits,
    )
