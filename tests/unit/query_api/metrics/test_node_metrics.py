"""The node's own gauges: readiness, live versions, disk space."""

from dataclasses import replace
from pathlib import Path

import pytest

from query_api.cluster.node_state import ModelState, NodeState
from query_api.metrics.node_metrics import NodeReading, node_exposition

MODEL = ModelState("balance", "balance", 4, 1, live=3)


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeReading:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    state = NodeState("node-1", "http://127.0.0.1:5051", models={"balance": MODEL})
    return NodeReading(state, is_ready=True, reports=(), verified=(), checks=(), store_dir=tmp_path)


def lines_of(reading: NodeReading) -> list[str]:
    return node_exposition(reading).decode().splitlines()


@pytest.mark.parametrize(("is_ready", "value"), [(True, "1.0"), (False, "0.0")])
def test_the_verdict_on_the_node_is_a_metric(reading: NodeReading, is_ready: bool, value: str) -> None:
    assert f"foldlake_node_ready {value}" in lines_of(replace(reading, is_ready=is_ready))


def test_a_live_version_is_named_and_its_absence_too(reading: NodeReading) -> None:
    models = {"balance": MODEL, "parcels": replace(MODEL, name="parcels", live=None)}
    assert reading.state is not None

    lines = lines_of(replace(reading, state=replace(reading.state, models=models)))

    assert 'foldlake_live_version{read_model="balance",version="3"} 1.0' in lines
    assert 'foldlake_live_version{read_model="parcels",version=""} 0.0' in lines


def test_the_disk_of_the_stores_has_its_size(reading: NodeReading) -> None:
    values = dict(line.split(" ") for line in lines_of(reading) if line.startswith("foldlake_store_disk"))

    assert 0 <= float(values["foldlake_store_disk_free_bytes"]) <= float(values["foldlake_store_disk_bytes"])


def test_a_node_without_a_state_or_a_folder_has_no_such_metrics(reading: NodeReading, tmp_path: Path) -> None:
    new = replace(reading, state=None, is_ready=False, store_dir=tmp_path / "missing")

    found = {line.split("{")[0].split(" ")[0] for line in lines_of(new) if not line.startswith("#")}

    assert found == {"foldlake_node_ready"}
