"""The paces of the stream: how long its queries collect events before they fold them.

The cost of a query is per poll and per message rather than per event: the longer it collects, the less processor time an event takes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """What a pace sets.

    fetch_min_bytes, fetch_max_wait_ms: the broker answers a consumer when it has so many bytes of a partition, or after that time.
    linger_ms: how long a producer collects state records for one request.
    shuffle_wait_ms: how long a task collects events for the task that folds them.
    """

    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    linger_ms: int = 0
    shuffle_wait_ms: int = 2

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source in real-time mode."""
        return {
            "kafka.fetch.min.bytes": str(self.fetch_min_bytes),
            "kafka.fetch.max.wait.ms": str(self.fetch_max_wait_ms),
        }

    def sink_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka sink in real-time mode."""
        return {"kafka.linger.ms": str(self.linger_ms)}


# By the value of FOLDLAKE_STREAM_PACE.
PACES = {
    "latency": Pace(),
    # Its consumers wait for one event, as long as that takes: to ask again every 10 ms cost a quarter of a core when nothing happened.
    "balanced": Pace(linger_ms=5, shuffle_wait_ms=10),
    "throughput": Pace(fetch_min_bytes=100_000, fetch_max_wait_ms=100, linger_ms=50, shuffle_wait_ms=50),
}
