"""`./foldlake reset` refuses what is not clear before it asks any server, and its dry run says what would change."""

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.app import app
from cli.display.comparison_display import print_comparison, print_exceeded
from include.rebuild.comparison.comparison import (
    Comparison,
    FieldChange,
    FieldTotals,
    KeyDifference,
    VersionStates,
)
from include.versions.start_rule import StartRuleError

PREVIEW = Comparison(
    read_model="balance",
    before=VersionStates(3, 1, "balance", {}, 5_000, 40),
    after=VersionStates(0, 1, "balance", {"0": 1_200, "1": 7}, 300, 30),
    changed=25,
    added=0,
    gone=10,
    fields={"amount": FieldTotals("900.00", "70.50", "829.50", (0, 2))},
    measure="amount",
    largest=(KeyDifference("you [red]", FieldChange("12", None), {"amount": FieldChange("80.00", None)}),),
)


@pytest.mark.parametrize("options", [[], ["--to", "earliest", "--shift-by", "3"], ["--to", "shift-by 3"]])
def test_a_start_is_given_in_one_way(options: list[str]) -> None:
    result = CliRunner().invoke(app, ["reset", "balance", *options])

    assert result.exit_code != 0
    assert "--shift-by" in result.output


def test_a_start_that_is_no_time_is_refused_with_what_is_allowed() -> None:
    result = CliRunner().invoke(app, ["reset", "balance", "--to", "yesterday"])

    assert isinstance(result.exception, StartRuleError)
    assert "allowed: `earliest`, a time" in str(result.exception)


def test_a_dry_run_shows_counts_sums_and_the_largest_changes(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=100)
    print_comparison(console, PREVIEW, "after the reset")
    print_exceeded(console, ["amount is below zero in 2 keys."])

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "starts at the first event 0:1,200, 1:7" in lines
    assert "events folded 5,000 300 -4,700" in lines
    assert "sum of amount 900.00 70.50 -829.50 (-92.17 %)" in lines
    assert "amount below zero 0 2" in lines
    assert "25 keys changed, 0 new, 10 gone: 87.5 % of 40." in lines
    assert "you [red] 12 -> - 80.00 -> -" in lines
    assert lines[-1] == "Threshold exceeded: amount is below zero in 2 keys."
