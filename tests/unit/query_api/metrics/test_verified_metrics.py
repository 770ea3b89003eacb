"""The ages of what is verified are metrics of each store, and the newest verdict one of each read model."""

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from include.quality.verified_file import VerifiedStores
from query_api.metrics import node_metrics
from query_api.status.newest_checks import NewestCheck
from tests.unit.quality.test_verified_tag import LAKE, NODES


def test_each_store_has_its_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 150.0)
    registry = CollectorRegistry()
    stores = VerifiedStores("balance", 3, {"lake": LAKE, "nodes": NODES})
    registry.register(node_metrics.VerifiedCollector([stores], []))

    lines = generate_latest(registry).decode().splitlines()

    assert 'foldlake_verified_age_seconds{read_model="balance",store="lake",version="3"} 50.0' in lines
    assert 'foldlake_verified_age_seconds{read_model="balance",store="nodes",version="3"} 48.5' in lines
    assert 'foldlake_verified_full_age_seconds{read_model="balance",store="nodes",version="3"} 100.0' in lines


@pytest.mark.parametrize(("passed", "failed"), [(True, "0.0"), (False, "1.0"), (None, "0.0")])
def test_a_failed_check_counts_and_one_without_a_verdict_does_not(passed: bool | None, failed: str) -> None:
    registry = CollectorRegistry()
    check = NewestCheck("balance", 3, "full", ("lake",), passed, "", datetime.now(UTC), 1.0, "")
    registry.register(node_metrics.VerifiedCollector([], [check]))

    lines = generate_latest(registry).decode().splitlines()

    assert f'foldlake_check_failed{{read_model="balance",version="3"}} {failed}' in lines
