"""Metrics of the servers and of the lake, for Prometheus: sections of the status document, which are read in the background."""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from query_api.metrics.gauges import Gauges, exposition

SERVICES, LAKE = "services", "lake"
SECTIONS = (SERVICES, LAKE)
"""The sections of the status document that have metrics here."""


def status_exposition(sections: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the metrics of these sections of the status document (name -> its content) in Prometheus' text format."""
    return exposition(_metrics(sections))


def _metrics(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    yield Gauges(["section"], [([name], section) for name, section in sections.items()]).of(
        "foldlake_status_error",
        "1 when this node could not read the section of the status; the section's metrics are then missing.",
        lambda section: float(section["error"] is not None),
    )
    services = _entries(sections[SERVICES])
    yield Gauges(["service"], [([one["service"]], one) for one in services]).of(
        "foldlake_service_up", "1 when the server answers this node.", lambda one: float(one["is_up"])
    )
    existing = [table for table in _entries(sections[LAKE]) if table["exists"]]
    tables = Gauges(["table"], [([table["table"]], table) for table in existing])
    yield tables.of(
        "foldlake_lake_table_age_seconds",
        "Time since Foldlake's newest commit.",
        lambda table: table["age_s"],
    )
    yield tables.of(
        "foldlake_lake_events_behind",
        "Source events after those that the table of a read model contains.",
        lambda table: table["events_behind"],
    )
    yield tables.of(
        "foldlake_lake_table_bytes", "Size of the table's current files.", lambda table: table["bytes"]
    )


def _entries(section: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of a section; none if its last reading failed: what was read before may be wrong by now."""
    return [] if section["error"] is not None or section["data"] is None else section["data"]
