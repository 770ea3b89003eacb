"""Which check a run of the DAG performs: a manual run follows its form, a run after a compaction what is new, or a sample, a scheduled run everything."""

from dataclasses import replace
from enum import Enum

from include.airflow.quality_operators import due_check, kind_of
from include.declarations.load import read_model
from include.quality.check import Mode, StoreName

FORM = {"read_model": "balance", "mode": "full", "stores": ["lake", "changelog"]}
BOTH = (StoreName.LAKE, StoreName.NODES)
BALANCE = read_model("balance")
# A fold in Python has no derived merge.
VISITS = replace(BALANCE, name="visits", folds={1: dict})


def test_a_manual_check_follows_its_form() -> None:
    assert due_check(BALANCE, "manual", FORM, []) == (Mode.FULL, (StoreName.LAKE, StoreName.CHANGELOG))
    assert due_check(BALANCE, "manual", FORM | {"mode": "sample"}, []) == (
        Mode.SAMPLE,
        (StoreName.LAKE, StoreName.CHANGELOG),
    )


def test_a_manual_check_skips_other_read_models() -> None:
    assert due_check(VISITS, "manual", FORM, []) is None


def test_a_check_after_a_compaction_is_incremental() -> None:
    assert due_check(BALANCE, "asset_triggered", FORM, ["check-due/balance"]) == (Mode.INCREMENTAL, BOTH)
    assert due_check(VISITS, "asset_triggered", FORM, ["check-due/balance"]) is None


def test_without_a_merge_a_check_after_a_compaction_covers_a_sample() -> None:
    earlier = replace(BALANCE, folds={**BALANCE.folds, 2: dict})

    assert due_check(VISITS, "asset_triggered", FORM, ["check-due/visits"]) == (Mode.SAMPLE, BOTH)
    assert due_check(earlier, "asset_triggered", FORM, ["check-due/balance"]) == (Mode.SAMPLE, BOTH)


def test_a_scheduled_check_covers_everything() -> None:
    assert due_check(VISITS, "scheduled", FORM, []) == (Mode.FULL, BOTH)


def test_run_types_are_recognised_by_their_value() -> None:
    class RunType(str, Enum):  # noqa: UP042 - as Airflow's is: its text is not its value
        ASSET_TRIGGERED = "asset_triggered"

    assert kind_of(RunType.ASSET_TRIGGERED) == kind_of("asset_triggered") == "asset_triggered"
