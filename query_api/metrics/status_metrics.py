"""Metrics of the servers and of the lake, for Prometheus: sections of the status document, which are read in the background."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

SERVICES, LAKE = "services", "lake"
SECTIONS = (SERVICES, LAKE)
"""The sections of the status document that have metrics here."""


class _StatusCollector(Collector):
    def __init__(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        self._sections = sections

    def collect(self) -> Iterable[Metric]:
        error = GaugeMetricFamily(
            "foldlake_status_error",
            "1 when this node could not read the section of the status; the section's metrics are then missing.",
            labels=["section"],
        )
        for name, section in self._sections.items():
            error.add_metric([name], float(section["error"] is not None))
        yield error
        yield self._services()
        yield from self._lake()

    def _read(self, section: str) -> list[Mapping[str, Any]]:
        """Return the entries of a section; none if its last reading failed: what was read before may be wrong by now."""
        found = self._sections[section]
        return [] if found["error"] is not None or found["data"] is None else found["data"]

    def _services(self) -> Metric:
        up = GaugeMetricFamily(
            "foldlake_service_up", "1 when the server answers this node.", labels=["service"]
        )
        for server in self._read(SERVICES):
            up.add_metric([server["service"]], float(server["is_up"]))
        return up

    def _lake(self) -> Iterable[Metric]:
        age = GaugeMetricFamily(
            "foldlake_lake_table_age_seconds", "Time since Foldlake's newest commit.", labels=["table"]
        )
        behind = GaugeMetricFamily(
            "foldlake_lake_events_behind",
            "Source events after those that the table of a read model contains.",
            labels=["table"],
        )
        size = GaugeMetricFamily(
            "foldlake_lake_table_bytes", "Size of the table's current files.", labels=["table"]
        )
        for table in self._read(LAKE):
            if not table["exists"]:
                continue
            labels = [table["table"]]
            size.add_metric(labels, table["bytes"])
            if table["age_s"] is not None:
                age.add_metric(labels, table["age_s"])
            if table["events_behind"] is not None:
                behind.add_metric(labels, table["events_behind"])
        yield from (age, behind, size)


def status_exposition(sections: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the metrics of these sections of the status document (name -> its content) in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(sections))
    return generate_latest(registry)
