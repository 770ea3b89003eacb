"""Waits until the routes to a version of a topic have read what their sources contain."""

import time

from include.declarations.catalog import Catalog
from include.rebuild.errors import StageTimeoutError
from include.rebuild.routed.events import RoutedTopic
from include.stream.query_reports import read_queries
from include.waiting import wait_for
from include.work_progress import WorkProgress

POLL_INTERVAL_S = 1.0
# The driver starts its queries within this time, and restarts one that failed.
NO_QUERY_TIMEOUT_S = 120.0


def wait_for_routes(bootstrap_servers: str, catalog: Catalog, topic: str, timeout_s: float) -> None:
    """Wait until each route to the topic has read all events that its source has now.

    Raises StageTimeoutError, also when the stream driver reports no query of a route; KafkaUnavailableError.
    """
    with RoutedTopic(bootstrap_servers, catalog, topic) as routed:
        progress = WorkProgress(f"routes to {topic}", "events", routed.total)
        lacking: dict[str, int] = {}
        reported_s = time.monotonic()

        def have_read() -> bool:
            nonlocal lacking, reported_s
            lacking = routed.lacking()
            progress.reached(routed.total - sum(lacking.values()))
            queries = {query.query for query in read_queries(bootstrap_servers) if query.is_fresh}
            missing = [name for name in lacking if name not in queries]
            if not missing:
                reported_s = time.monotonic()
            elif time.monotonic() - reported_s > NO_QUERY_TIMEOUT_S:
                raise StageTimeoutError(
                    f"The stream driver does not run {missing[0]}, which writes {topic}: run ./foldlake up after the declaration was "
                    "added; `./foldlake status` shows the query."
                )
            return not lacking

        if not wait_for(have_read, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S):
            behind = "; ".join(f"{name} lacks {events:,} events" for name, events in lacking.items())
            raise StageTimeoutError(f"{topic} is not complete after {timeout_s:,.0f} s: {behind}.")
