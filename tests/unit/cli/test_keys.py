"""`./foldlake keys`: lifetimes, the table, and what each command needs."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.app import app
from cli.keys import SUBCOMMANDS, expiry, keys_table, lifetime
from include.access.api_key import create_key, revoked
from include.access.caller import Scope

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
READ = frozenset({Scope.READ})


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, ["keys", command, "--help"])

    assert result.exit_code == 0
    assert f"./foldlake keys {command}" in result.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", NOW + timedelta(days=90)),
        ("12h", NOW + timedelta(hours=12)),
        ("30m", NOW + timedelta(minutes=30)),
        ("2030-12-31", datetime(2030, 12, 31, tzinfo=UTC)),
        ("2030-12-31T10:00+02:00", datetime(2030, 12, 31, 8, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_a_lifetime_or_a_date(text: str, expected: datetime) -> None:
    assert expiry(text, NOW) == expected


@pytest.mark.parametrize("text", ["90", "d", "-1d", "1y", "1.5h", "tomorrow", "2030-13-01"])
def test_another_text_is_no_expiry(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        expiry(text, NOW)


def test_a_lifetime_is_a_number_with_a_unit() -> None:
    assert lifetime("90s") == timedelta(seconds=90)


def test_the_table_shows_each_key_and_no_secret() -> None:
    valid, secret = create_key("till-7", READ, frozenset({"balance"}), NOW + timedelta(days=1))
    ended, _ = create_key("old", frozenset(Scope))
    console = Console(width=200, record=True)

    console.print(keys_table([valid, revoked(ended, NOW)], NOW))

    text = console.export_text()
    assert all(part in text for part in ("till-7", valid.id, "balance", "2026-01-03 03:04", "valid"))
    assert all(part in text for part in ("old", "read,write,admin", "all", "never", "revoked"))
    assert secret.rpartition("_")[2] not in text
    assert valid.digest not in text


def test_wrong_options_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.servers.require_up", lambda *_: None)

    for options, message in (
        (["--scopes", "root"], "names no scopes"),
        (["--expires", "soon"], "is no lifetime"),
    ):
        result = CliRunner().invoke(app, ["keys", "create", "--name", "a", *options])
        assert result.exit_code == 2
        assert message in result.output
