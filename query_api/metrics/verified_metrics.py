"""Metrics of quality checks and of what they have verified, for Prometheus: read from their files when scraped."""

import time
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from include.quality.verified_file import VerifiedStores
from query_api.status.newest_checks import NewestCheck

LABELS = ["read_model", "version", "store"]


class VerifiedCollector(Collector):
    """The ages of what is verified of each store, and the verdicts of the newest checks."""

    def __init__(self, verified: Iterable[VerifiedStores], checks: Iterable[NewestCheck]) -> None:
        self._verified = tuple(verified)
        self._checks = tuple(checks)

    def collect(self) -> Iterable[Metric]:
        """Yield every gauge."""
        now_s = time.time()
        age = GaugeMetricFamily(
            "foldlake_verified_age_seconds",
            "Age of the oldest event that no passed quality check covers, at most.",
            labels=LABELS,
        )
        full = GaugeMetricFamily(
            "foldlake_verified_full_age_seconds",
            "Time since a passed quality check compared every key.",
            labels=LABELS,
        )
        for found in self._verified:
            for store, mark in found.stores.items():
                labels = [found.read_model, str(found.version), store]
                age.add_metric(labels, mark.age_s(now_s))
                full.add_metric(labels, mark.full_age_s(now_s))
        failed = GaugeMetricFamily(
            "foldlake_check_failed",
            "1 when the newest quality check of the live version failed; 0 when it passed, or the read model cannot be checked.",
            labels=["read_model", "version"],
        )
        for check in self._checks:
            failed.add_metric([check.read_model, str(check.version)], float(check.passed is False))
        yield from (age, full, failed)
