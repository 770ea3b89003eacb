"""The event of a check of event tables says what it has read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException
from deltalake import CommitProperties, write_deltalake

from include.airflow.names import lake_asset, quality_asset
from include.airflow.quality_operators import CheckEventTables
from include.declarations.event_table import EventTable
from include.lake.tags import AppendTag
from include.position import Offsets
from include.replay import table_proof
from include.replay.table_proof import LogComparison

SALES = EventTable("sales", "sales", "FundsAdded")


def check_after_append(lake: Path, offsets: list[int], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Check a table with these offsets, of which the commit says that there are three, and return the event's details."""
    monkeypatch.setenv("FOLDLAKE_LAKE_DIR", str(lake))
    rows = {
        "id": [f"sale-{n}" for n in offsets],
        "source_partition": [0] * len(offsets),
        "source_offset": offsets,
    }
    tag = AppendTag("sales", "sales", "id", offsets=Offsets({0: 3}), rows=3).to_json()
    properties = CommitProperties(custom_metadata={"userMetadata": tag})
    write_deltalake(str(lake / "sales"), pa.table(rows), mode="append", commit_properties=properties)
    extra: dict[str, Any] = {}
    event = SimpleNamespace(extra=extra)
    context = {
        "dag_run": SimpleNamespace(run_type="asset_triggered", run_id="asset_triggered__a"),
        "triggering_asset_events": {Asset(lake_asset("sales")): []},
        "outlet_events": {Asset(quality_asset("sales")): event},
    }
    compared = LogComparison(compared=1, proved=2)
    monkeypatch.setattr(table_proof, "compare_with_log", lambda *_, **__: compared)
    CheckEventTables(task_id="check_sales", tables=(SALES,), group="sales").execute(context)
    return dict(event.extra)


def test_a_check_that_passed_says_how_many_rows_it_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_after_append(tmp_path, [0, 1, 2], monkeypatch) == {
        "sales": {"rows": 3, "compared_with_log": 1, "proved_before": 2}
    }


def test_a_check_that_failed_has_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowFailException, match="The check of event table sales failed"):
        check_after_append(tmp_path, [0, 1], monkeypatch)
