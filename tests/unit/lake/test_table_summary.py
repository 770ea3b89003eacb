"""The summary and the status of a table: rows, size, and the tag of Foldlake's newest commit, read without Spark and without Kafka."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from deltalake import CommitProperties, write_deltalake

from include.airflow.names import lake_asset
from include.airflow.web import check_details, describe_tables, table_details
from include.declarations.event_table import MONTH_COLUMN, EventTable
from include.declarations.load import read_model
from include.lake.status import event_table_status, read_model_status, table_summary
from include.lake.tags import AppendTag, CommitTag
from include.position import Offsets
from include.settings import Settings

ROWS = pa.table({"key": ["a", "b", "c"]})


def commit(lake: Path, name: str, tag: str | None) -> None:
    properties = CommitProperties(custom_metadata={} if tag is None else {"userMetadata": tag})
    write_deltalake(str(lake / name), ROWS, mode="append", commit_properties=properties)


def test_a_table_that_does_not_exist_has_no_summary(tmp_path: Path) -> None:
    assert table_summary(str(tmp_path), "balance") is None
    assert table_details(Settings.of(lake_dir=str(tmp_path)), "balance") == {}


def test_a_read_model_s_table_has_version_and_offsets_of_the_newest_commit_of_foldlake(
    tmp_path: Path,
) -> None:
    tag = CommitTag("balance", 3, 2, "compaction", complete_up_to=Offsets({0: 7, 1: 9}))
    commit(tmp_path, "balance", tag.to_json())
    commit(tmp_path, "balance", None)

    found = table_summary(str(tmp_path), "balance")

    assert found is not None
    assert (found.version, found.rows, found.delta_version) == (3, 6, 1)
    assert found.complete_up_to == Offsets({0: 7, 1: 9})
    assert found.bytes > 0
    assert found.newest_age_s == pytest.approx(0, abs=60)
    assert table_details(Settings.of(lake_dir=str(tmp_path)), "balance") == {
        "version": 3,
        "offsets": {"0": 7, "1": 9},
        "rows": 6,
        "bytes": found.bytes,
        "delta_version": 1,
    }


def test_an_event_table_has_no_version(tmp_path: Path) -> None:
    tag = AppendTag("lines", "invoices", "id", offsets=Offsets({0: 4}), rows=3)
    commit(tmp_path, "lines", tag.to_json())

    found = table_summary(str(tmp_path), "lines")

    assert found is not None
    assert (found.version, found.rows, found.complete_up_to) == (None, 3, Offsets({0: 4}))
    assert "version" not in table_details(Settings.of(lake_dir=str(tmp_path)), "lines")


def test_without_kafka_the_status_of_a_read_model_s_table_has_no_lag(tmp_path: Path) -> None:
    tag = CommitTag("balance", 3, 2, "compaction", complete_up_to=Offsets({0: 7}))
    commit(tmp_path, "balance", tag.to_json())
    commit(tmp_path, "balance", None)

    found = read_model_status(str(tmp_path), None, read_model("balance"), commits=1)

    assert found is not None
    assert (found.table.version, found.table.behind, found.live_version, found.follows_live) == (
        3,
        None,
        None,
        True,
    )
    assert [(one.delta_version, one.tag) for one in found.table.history] == [(1, None)]
    assert read_model_status(str(tmp_path / "elsewhere"), None, read_model("balance"), commits=1) is None


def test_the_status_of_an_event_table_counts_the_rows_of_each_month(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "c"], MONTH_COLUMN: ["2017-02", "2017-01", "2017-02"]})
    tag = AppendTag("sales", "sales", "id", offsets=Offsets({0: 5}), rows=3, unreadable=2)
    properties = CommitProperties(custom_metadata={"userMetadata": tag.to_json()})
    write_deltalake(str(tmp_path / "sales"), rows, partition_by=[MONTH_COLUMN], commit_properties=properties)

    found = event_table_status(str(tmp_path), None, EventTable("sales", "sales", "Sale"), commits=5)

    assert found is not None
    assert found.months == {"2017-01": 1, "2017-02": 2}
    assert (found.table.rows, found.table.files, found.unreadable, found.lost) == (3, 2, 2, 0)
    assert found.table.complete_up_to == Offsets({0: 5})


def test_the_event_of_a_folder_of_tables_has_the_details_of_each_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLAKE_LAKE_DIR", str(tmp_path))
    commit(tmp_path, "events/sales", AppendTag("sales", "sales", "id", offsets=Offsets({0: 4})).to_json())
    event = SimpleNamespace(extra={})
    context: Any = {"outlet_events": {Asset(lake_asset("events")): event}}

    describe_tables("events", ["events/sales", "events/empty"])(context, None)

    assert {name: found["rows"] for name, found in event.extra.items()} == {"events/sales": 3}


def test_the_details_of_a_check_are_those_of_its_json() -> None:
    result = {
        "request": {"mode": "full", "stores": ["lake"]},
        "version": 2,
        "keys": 911,
        "events": 5000,
        "verified": {"lake": {"verified_up_to": {"0": 12}}},
        "report_url": "http://127.0.0.1:5051/reports/quality/x.html",
    }

    assert check_details(result) == {
        "version": 2,
        "mode": "full",
        "stores": ["lake"],
        "keys": 911,
        "events": 5000,
        "offsets": {"lake": {"0": 12}},
        "report": "http://127.0.0.1:5051/reports/quality/x.html",
    }
