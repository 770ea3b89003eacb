"""`./foldlake sql` runs a query and writes its result in each format; errors name what is wrong and the next step."""

import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.display.query_output import QueryError, write_result
from include.lake.sql_tables import NoLakeError, sql_tables
from include.settings import Settings

AMOUNTS = {"cents": Decimal("0.10"), "rich": Decimal("123456789012345678901234567890123456.78")}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a home with a lake in which only the balance and its events are."""
    settings = Settings.of(home=tmp_path_factory.mktemp("home"), systems=("logs",))
    frame = pl.DataFrame(
        {"key": list(AMOUNTS), "amount": pl.Series(list(AMOUNTS.values()), dtype=pl.Decimal(38, 2))}
    )
    for table in ("balance", "events/balance"):
        frame.write_delta(f"{settings.lake_root}/{table}")
    return settings


def written(settings: Settings, query: str, output_format: str, output: Path | None = None) -> None:
    write_result(settings, sql_tables(settings.lake_root), query, output_format, output)


def test_json_has_exact_decimals(settings: Settings, tmp_path: Path) -> None:
    written(
        settings,
        "select *, date '2026-11-26' as day, 'nan'::double as none, [1.50] as list from balance order by key",
        "json",
        tmp_path / "result",
    )

    text = (tmp_path / "result").read_text(encoding="utf-8")
    rows = json.loads(text, parse_float=Decimal)
    assert {row["key"]: row["amount"] for row in rows} == AMOUNTS
    assert (rows[0]["day"], rows[0]["none"]) == ("2026-11-26", "NaN")
    assert '"amount":0.10' in text
    assert '"list":[1.50]' in text


def test_an_empty_result_is_an_empty_array(settings: Settings, tmp_path: Path) -> None:
    written(settings, "from balance limit 0", "json", tmp_path / "result")

    assert json.loads((tmp_path / "result").read_bytes()) == []


def test_csv_has_a_header(settings: Settings, tmp_path: Path) -> None:
    written(settings, "from balance order by key", "csv", tmp_path / "result")

    assert (tmp_path / "result").read_text(encoding="utf-8").splitlines() == [
        "key,amount",
        "cents,0.10",
        "rich,123456789012345678901234567890123456.78",
    ]


def test_parquet_keeps_the_types(settings: Settings, tmp_path: Path) -> None:
    written(settings, "from balance", "parquet", tmp_path / "it's.parquet")

    frame = pl.read_parquet(tmp_path / "it's.parquet")
    assert frame.schema["amount"] == pl.Decimal(38, 2)
    assert dict(frame.iter_rows()) == AMOUNTS


def test_the_result_of_the_last_statement_is_written(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    written(
        settings,
        "set variable least = 1; select key from balance where amount < getvariable('least')",
        "table",
    )

    shown = capfd.readouterr().out
    assert "cents" in shown
    assert "rich" not in shown


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "from balances",
            r"There is no table balances\. Did you mean balance\? Tables: balance, events_balance; the commits of each are in <table>_history",
        ),
        (
            "from events.balance",
            r"There is no table events\.balance: in SQL, its name is events_balance, without a schema",
        ),
        ('select * from Events . "Balance"', r"its name is events_balance, without a schema"),
        ('from "events/balance"', r"There is no table events/balance: in SQL, its name is events_balance"),
        (
            "from lake.balance",
            r"There is no table lake\.balance: in SQL, its name is balance, without a schema",
        ),
        ("from lake.balance_history", r"its name is balance_history, without a schema"),
        ("from events.balance_history", r"its name is events_balance_history, without a schema"),
        ("from lake.nothing", r"There is no table lake\.nothing\. Tables: "),
        ("from balance_histroy", r"Did you mean balance_history\?"),
        (
            "from browser_windows",
            r"lake/browser-windows does not exist yet: .*`./foldlake compact browser-windows`",
        ),
        ('from "browser-windows"', "lake/browser-windows does not exist yet"),
        ("from lake.Browser_Windows", "lake/browser-windows does not exist yet"),
        ("from browser_windows_history", "lake/browser-windows does not exist yet"),
        ("from settings", r"There is no table settings\. Tables: "),
        (
            "from browser_events",
            "lake/browser-events does not exist yet: .* `./foldlake compact browser-events`",
        ),
        ("from balance where", "syntax error"),
        ("select amounts from balance", 'Referenced column "amounts" not found'),
        (" ", "There is no query"),
    ],
)
def test_an_error_names_what_is_wrong(settings: Settings, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        written(settings, query, "csv")


@pytest.mark.parametrize("query", ["show tables", " SHOW  Tables ;", "select 1; show tables;"])
def test_all_tables_are_shown(settings: Settings, tmp_path: Path, query: str) -> None:
    written(settings, query, "csv", tmp_path / "result")

    assert (tmp_path / "result").read_text(encoding="utf-8").splitlines() == [
        "name",
        "balance",
        "balance_history",
        "events_balance",
        "events_balance_history",
    ]


def test_a_result_that_cannot_be_written_is_an_error(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"cannot be written to .*: No such file or directory\."):
        written(settings, "from balance", "csv", tmp_path / "none" / "result.csv")


def test_a_query_is_read_from_standard_input(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_HOME", str(settings.home))

    done = CliRunner().invoke(app, ["sql", "--format", "csv"], input="select count(*) as n from balance")

    assert (done.exit_code, done.stdout) == (0, "n\n2\n")


def test_without_a_lake_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))

    done = CliRunner().invoke(app, ["sql", "select 1"])

    assert isinstance(done.exception, NoLakeError)
    assert "`./foldlake compact` does now" in str(done.exception)
