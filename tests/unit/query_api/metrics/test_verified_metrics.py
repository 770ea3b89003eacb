"""The ages of what is verified are metrics of each store, and the newest verdict one of each read model."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.quality.newest_checks import NewestCheck
from include.quality.verified_stores import VerifiedStores
from query_api.metrics.node_metrics import NodeReading, node_exposition
from tests.unit.quality.test_verified_tag import LAKE, NODES


@pytest.fixture(autouse=True)
def shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))


def lines(*, verified: tuple[VerifiedStores, ...] = (), checks: tuple[NewestCheck, ...] = ()) -> list[str]:
    reading = NodeReading(None, True, (), verified, checks, Path())  # noqa: FBT003 - is_ready
    return node_exposition(reading).decode().splitlines()


def test_each_store_has_its_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 150.0)

    found = lines(verified=(VerifiedStores("balance", 3, {"lake": LAKE, "nodes": NODES}),))

    assert 'foldlake_verified_age_seconds{read_model="balance",store="lake",version="3"} 50.0' in found
    assert 'foldlake_verified_age_seconds{read_model="balance",store="nodes",version="3"} 48.5' in found
    assert 'foldlake_verified_full_age_seconds{read_model="balance",store="nodes",version="3"} 100.0' in found


@pytest.mark.parametrize(("passed", "failed"), [(True, "0.0"), (False, "1.0"), (None, "0.0")])
def test_a_failed_check_counts_and_one_without_a_verdict_does_not(passed: bool | None, failed: str) -> None:
    check = NewestCheck("balance", 3, "full", ("lake",), passed, "", datetime.now(UTC), 1.0, "")

    assert f'foldlake_check_failed{{read_model="balance",version="3"}} {failed}' in lines(checks=(check,))
