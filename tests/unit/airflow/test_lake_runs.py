"""Which tables a run of the DAG `compaction` brings up to date, and which tasks a table waits for."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from include.airflow import lake_runs
from include.airflow.client import AirflowApi, PoolTask
from include.airflow.lake_runs import (
    NEXT_COMPACTION,
    chosen_tables,
    earlier_scheduled_run,
    tasks_of,
    waits_for,
)
from include.airflow.names import ALL_TABLES
from include.declarations.event_table import AppendedTable
from include.declarations.read_model import ReadModel
from include.declarations.topic_tables import LakeCatalog, load_lake_catalog
from include.errors import KafkaUnavailableError
from include.settings import Settings

OWN = "scheduled__2026-05-01T12:05:00+00:00"
EARLIER, LATER = "scheduled__2026-05-01T12:00:00+00:00", "scheduled__2026-05-01T12:10:00+00:00"
REQUESTED = "manual__2026-05-01T11:00:00+00:00"
PROMOTION = PoolTask("rebuild", "run-a", "promote_lake", "scheduled")
COMPACTION = PoolTask("compaction", "scheduled__1", "compact_orders", "running")


@dataclass
class Lake:
    """The tables that have something new, and those that cannot be read, with the error."""

    pending: set[str] = field(default_factory=set)
    damaged: dict[str, Exception] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)

    def has_work(self, _settings: Settings, declared: ReadModel | AppendedTable) -> bool:
        """Return whether a table has something new."""
        if declared.name in self.damaged:
            raise self.damaged[declared.name]
        return declared.name in self.pending

    def confirm(self, _settings: Settings, model: ReadModel) -> bool:
        """Note that what was verified is confirmed."""
        self.confirmed.append(model.name)
        return True


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake()
    monkeypatch.setattr(lake_runs, "has_pending_work", lake.has_work)
    monkeypatch.setattr(lake_runs, "has_records_to_append", lake.has_work)
    monkeypatch.setattr(lake_runs, "confirm_if_nothing_is_new", lake.confirm)
    return lake


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path, systems=("pos",))


@pytest.fixture
def catalog(settings: Settings) -> LakeCatalog:
    return load_lake_catalog(settings)


def test_a_scheduled_run_takes_the_tables_that_have_something_new(
    settings: Settings, catalog: LakeCatalog, lake: Lake
) -> None:
    lake.pending = {"loyalty", "trend"}

    assert chosen_tables(settings, catalog, ALL_TABLES, is_scheduled=True) == ["loyalty", "trend"]
    assert lake.confirmed == [name for name in catalog.models if name != "loyalty"]


def test_a_requested_run_takes_what_it_names_whatever_is_new(
    settings: Settings, catalog: LakeCatalog, lake: Lake
) -> None:
    assert lake.pending == set()
    assert chosen_tables(settings, catalog, "trend", is_scheduled=False) == ["trend"]
    assert chosen_tables(settings, catalog, "events", is_scheduled=False) == [*catalog.of_topics]
    assert chosen_tables(settings, catalog, ALL_TABLES, is_scheduled=False) == [
        *catalog.models,
        *catalog.event_tables,
    ]


def test_a_damaged_table_is_left_to_its_own_task_and_does_not_block_the_others(
    settings: Settings, catalog: LakeCatalog, lake: Lake
) -> None:
    lake.pending, lake.damaged = {"trend"}, {"balance": ValueError("no log")}

    assert set(chosen_tables(settings, catalog, ALL_TABLES, is_scheduled=True)) == {"balance", "trend"}


def test_without_kafka_the_choice_is_repeated(settings: Settings, catalog: LakeCatalog, lake: Lake) -> None:
    lake.damaged = {"balance": KafkaUnavailableError("no broker")}

    with pytest.raises(KafkaUnavailableError):
        chosen_tables(settings, catalog, ALL_TABLES, is_scheduled=True)


@pytest.mark.parametrize(
    ("active", "earlier"),
    [([OWN], None), ([OWN, LATER], None), ([REQUESTED, OWN], None), ([REQUESTED, OWN, EARLIER], EARLIER)],
)
def test_only_an_earlier_scheduled_run_makes_another_one_superfluous(
    active: list[str], earlier: str | None
) -> None:
    assert earlier_scheduled_run(active, OWN) == earlier


def test_each_table_has_a_task(catalog: LakeCatalog) -> None:
    assert tasks_of(catalog, ["balance", "trend"]) == ["compact_balance", "append_trend"]
    # One for the tables of all topics.
    assert tasks_of(catalog, catalog.of_topics) == ["append_events"]


class Pool(AirflowApi):
    """An Airflow whose pool has these tasks."""

    def __init__(self, *tasks: PoolTask) -> None:
        super().__init__("http://127.0.0.1:1")
        self._tasks = list(tasks)

    def pool_tasks(self, pool: str) -> list[PoolTask]:
        """Return the tasks."""
        assert pool == "lake"
        return self._tasks

    def run_conf(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Return the fields of the only run of a plan."""
        assert (dag_id, run_id) == ("rebuild", "run-a")
        return {"read_model": "balance"}


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ((), NEXT_COMPACTION),
        ((COMPACTION,), NEXT_COMPACTION),
        ((PROMOTION,), "the task promote_lake of the run run-a of rebuild, which is scheduled"),
        (
            (COMPACTION, PROMOTION),
            "the task promote_lake of the run run-a of rebuild, which waits for compact_orders of compaction",
        ),
        (
            (PoolTask("compaction", "manual__2", "compact_balance", "running"), PROMOTION),
            "the task compact_balance of the run manual__2 of compaction, which is running",
        ),
        (
            (PoolTask("rebuild_topic.orders", "run-b", "balance.promote_lake", "running"),),
            "the task balance.promote_lake of the run run-b of rebuild_topic.orders, which is running",
        ),
    ],
)
def test_the_queue_of_a_table(tasks: tuple[PoolTask, ...], expected: str) -> None:
    assert waits_for(Pool(*tasks), "balance") == expected


def test_the_promotion_of_another_read_model_is_not_awaited() -> None:
    assert waits_for(Pool(PROMOTION), "orders") == NEXT_COMPACTION
