"""Which check a run of the DAG makes: by hand what the form says, after a compaction a sample, by the clock everything."""

from enum import Enum

from include.airflow.quality_operators import due_check, kind_of
from include.quality.check import Mode, StoreName

FORM = {"read_model": "balance", "mode": "full", "stores": ["lake", "changelog"]}
BOTH = (StoreName.LAKE, StoreName.NODES)


def test_by_hand_the_form_decides() -> None:
    assert due_check("balance", "manual", FORM, []) == (Mode.FULL, (StoreName.LAKE, StoreName.CHANGELOG))
    assert due_check("balance", "manual", FORM | {"mode": "sample"}, []) == (
        Mode.SAMPLE,
        (StoreName.LAKE, StoreName.CHANGELOG),
    )


def test_by_hand_other_read_models_are_left_alone() -> None:
    assert due_check("visits", "manual", FORM, []) is None


def test_after_a_compaction_a_sample_of_what_was_compacted() -> None:
    assert due_check("balance", "asset_triggered", FORM, ["lake/balance"]) == (Mode.SAMPLE, BOTH)
    assert due_check("visits", "asset_triggered", FORM, ["lake/balance"]) is None


def test_by_the_clock_everything() -> None:
    assert due_check("visits", "scheduled", FORM, []) == (Mode.FULL, BOTH)


def test_kinds_of_runs_are_told_by_their_value() -> None:
    class RunType(str, Enum):  # noqa: UP042 - as Airflow's is: its text is not its value
        ASSET_TRIGGERED = "asset_triggered"

    assert kind_of(RunType.ASSET_TRIGGERED) == kind_of("asset_triggered") == "asset_triggered"
