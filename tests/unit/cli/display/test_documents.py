"""`--json` prints fields in camelCase; with `--field-names snake_case` those of earlier releases, and a hint on the error output."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.display.documents import DEPRECATED, print_document
from include.nodes.field_names import FieldNames

DOCUMENT = {"key_digest": {"state": {"in_stock": Decimal("5.00")}}}


@pytest.mark.parametrize(
    ("names", "text", "hint"),
    [
        (FieldNames.CAMEL, '{"keyDigest":{"state":{"in_stock":5.00}}}', ""),
        (FieldNames.SNAKE, '{"key_digest":{"state":{"in_stock":5.00}}}', DEPRECATED),
    ],
)
def test_names_and_hint(names: FieldNames, text: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_document(DOCUMENT, names, indent=False)

    printed = capsys.readouterr()
    assert (printed.out.strip(), printed.err.strip()) == (text, hint)


@pytest.mark.parametrize(
    ("options", "name"), [([], "lastChecks"), (["--field-names", "snake_case"], "last_checks")]
)
def test_the_status_of_a_stack_that_is_not_up(
    options: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))

    printed = CliRunner().invoke(app, ["status", "--json", *options]).stdout

    assert name in json.loads(printed)


@pytest.mark.parametrize("command", ["status", "versions", "lake", "explain", "dead-letters", "keys list"])
def test_every_command_with_a_document_has_the_option(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"}).output

    assert "--json" in shown
    assert "--field-names" in shown
