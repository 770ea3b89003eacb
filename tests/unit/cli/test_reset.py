"""`./foldlake reset` refuses what is not clear before it asks any server, and its dry run says what would change."""

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.reset import print_preview
from include.versions.reset_preview import FieldChange, KeyChange, ResetPreview
from include.versions.start_rule import StartRuleError

PREVIEW = ResetPreview(
    read_model="balance",
    live=3,
    starts=({}, {"0": 1_200, "1": 7}),
    events=(5_000, 300),
    keys=(40, 30),
    changed=25,
    added=0,
    gone=10,
    totals={"amount": FieldChange("900.00", "70.50")},
    largest=(KeyChange("you", FieldChange("12", None), {"amount": FieldChange("80.00", None)}),),
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


def test_a_preview_survives_its_file() -> None:
    assert ResetPreview.from_json(PREVIEW.to_json()) == PREVIEW


def test_a_dry_run_shows_counts_sums_and_the_largest_changes(capsys: pytest.CaptureFixture[str]) -> None:
    print_preview(PREVIEW)

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "starts at the first event 0:1,200, 1:7" in lines
    assert "events folded 5,000 300" in lines
    assert "sum of amount 900.00 70.50" in lines
    assert "25 keys change, 0 are new, 10 are gone." in lines
    assert "you 12 -> - 80.00 -> -" in lines
    assert lines[-1] == "Nothing was changed."
