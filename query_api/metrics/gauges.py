"""Gauges for Prometheus that are computed when a page is read."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

T = TypeVar("T")


class Gauges(Generic[T]):
    """Gauges of the same things, with the same labels."""

    def __init__(self, labels: Sequence[str], things: Iterable[tuple[Sequence[str], T]]) -> None:
        """Take the things with the values of their labels."""
        self._labels = labels
        self._things = tuple(things)

    def of(self, name: str, documentation: str, value: Callable[[T], float | None]) -> Metric:
        """Return a gauge with the value of each thing; without a sample where it is None."""
        metric = GaugeMetricFamily(name, documentation, labels=self._labels)
        for label_values, thing in self._things:
            number = value(thing)
            if number is not None:
                metric.add_metric(label_values, number)
        return metric


def gauge(name: str, documentation: str, value: float) -> Metric:
    """Return a gauge without labels."""
    return GaugeMetricFamily(name, documentation, value=value)


class _Computed(Collector):
    def __init__(self, metrics: Collection[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def exposition(metrics: Iterable[Metric], registry: CollectorRegistry | None = None) -> bytes:
    """Return the metrics in Prometheus' text format, after those of a registry."""
    registry = registry or CollectorRegistry()
    registry.register(_Computed(tuple(metrics)))
    return generate_latest(registry)
