"""A comparison as data: version 2 of `balance` adds a bonus to withdrawals too, and loses a customer."""

from include.rebuild.comparison.comparison import (
    Bin,
    Comparison,
    FieldChange,
    FieldTotals,
    KeyDifference,
    VersionStates,
)
from include.rebuild.comparison.fold_source import FoldText

BEFORE_CODE = """def funds():
    amount = signed()
    return {"amount": F.sum(amount)}"""
AFTER_CODE = """def funds_with_bonus():
    amount = signed()
    return {"amount": F.sum(amount + bonus())}"""

EXAMPLE = Comparison(
    read_model="balance",
    before=VersionStates(1, 1, "balance", {}, 5_000, 4_000),
    after=VersionStates(2, 2, "balance", {}, 5_000, 4_001),
    changed=395,
    added=3,
    gone=2,
    fields={
        "amount": FieldTotals(
            before="42840000.00",
            after="44660000.00",
            moved="1820100.00",
            below_zero=(0, 7),
            bins=(Bin("-50", "-20", 1), Bin("-20", "-10", 0), Bin("1000", "2000", 300)),
        )
    },
    measure="amount",
    largest=(
        KeyDifference(
            "you & <me>",
            FieldChange("12", "12"),
            {"amount": FieldChange("8000.00", "80.50"), "note": FieldChange("0012", "0012")},
        ),
        KeyDifference(
            "gone|away",
            FieldChange("1", None),
            {"amount": FieldChange("5.00", None), "note": FieldChange("x", None)},
        ),
    ),
    samples=(
        KeyDifference(
            "new one",
            FieldChange(None, "3"),
            {"amount": FieldChange(None, "-1.00"), "note": FieldChange(None, "y")},
        ),
    ),
    new_fields=("note",),
    folds=(
        FoldText(1, BEFORE_CODE, ("amount = sum(amount)",)),
        FoldText(2, AFTER_CODE, ("amount = sum(amount + bonus)",)),
    ),
    notes=("The versions fold different topics.",),
    run_id="rebuild-balance-v2",
    reason="1 % bonus",
    compared_at="2026-11-26T06:00:00+00:00",
)
