"""`./foldlake rebuild` refuses what is not clear before it asks any server."""

import pytest
from typer.testing import CliRunner

from cli.app import app
from include.rebuild.errors import RequestError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reason", "why"], "Give a read model, or --topic."),
        (["balance", "--topic", "postings", "--reason", "why"], "Give a read model, or --topic."),
        (["balance"], "Give --reason"),
        (["balance", "--auto-promote"], "Give --reason"),
        (["--topic", "postings", "--dry-run", "--fold-revision", "1"], "newest fold revision"),
    ],
)
def test_a_command_that_is_not_clear_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["rebuild", *arguments])

    assert result.exit_code != 0
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-changed-percent", "101"], "max_changed_percent is 101"),
        (["--max-total-change", "-1"], "max_total_change is -1"),
        (["--fold-revision", "99"], "no fold revision 99"),
    ],
)
def test_a_dry_run_needs_no_reason_but_a_valid_request(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["rebuild", "balance", "--dry-run", *options])

    assert isinstance(result.exception, RequestError)
    assert message in str(result.exception)
