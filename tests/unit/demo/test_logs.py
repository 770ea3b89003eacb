"""The log lines of the system `logs`: always the same, and what the oracle and the report say of them."""

import json
from collections import Counter
from itertools import pairwise

import duckdb
import pytest

from cli.demos.logs import UNSOLVED
from demo.examples_page import answers, with_answers
from demo.logs.catalogue import first_entries, name_of
from demo.logs.comparison import compare
from demo.logs.lines import PRODUCTS, LogLine, bots, log_lines
from demo.logs.oracle import oracle
from demo.logs.report import EXAMPLES, PAGE, browser_events_of_lines
from include.declarations.load import load_catalog
from include.settings.systems import system_folder

FEW = 5_000


@pytest.fixture(scope="module")
def lines() -> list[LogLine]:
    return list(log_lines(FEW))


@pytest.fixture(scope="module")
def expected(lines: list[LogLine]) -> duckdb.DuckDBPyConnection:
    return oracle(lines)


def test_fewer_lines_are_the_beginning_of_more(lines: list[LogLine]) -> None:
    assert list(log_lines(FEW // 2)) == lines[: FEW // 2]
    assert len(lines) == FEW


def test_lines_are_doubled_late_and_broken(lines: list[LogLine]) -> None:
    times = [json.loads(line.text)["@timestamp"] for line in lines if line.text.endswith("}")]

    assert max(Counter(lines).values()) == 2
    assert sum(later < earlier for earlier, later in pairwise(times)) > FEW / 100
    assert len(times) < FEW


def test_the_oracle_counts_what_the_lines_have(
    lines: list[LogLine], expected: duckdb.DuckDBPyConnection
) -> None:
    read = [json.loads(line.text) for line in lines if line.text.endswith("}")]
    views = Counter(line["product_id"] for line in read if "product_id" in line)
    actions = Counter(line["browser_hash"] for line in read if line["logger_name"] == "browser-actions")
    solved = {line["browser_hash"] for line in read if line.get("solved") is True}

    assert dict(expected.execute("from expected_counts").fetchall()) == views
    found = {browser: rest for browser, *rest in expected.execute("from expected_browsers").fetchall()}
    assert all(
        found[browser] == [count, browser in solved, 0 if browser in solved else count]
        for browser, count in actions.items()
    )
    assert {reason for reason, _ in expected.execute("from expected_letters").fetchall()} == {
        "invalid_field",
        "malformed_json",
    }


def test_the_comparison_finds_what_is_missing_and_what_is_surplus(
    expected: duckdb.DuckDBPyConnection,
) -> None:
    result = compare(
        expected, "from (values ('a'), ('b'), ('b'))", "from (values ('a'), ('a'), ('b'), ('x'))"
    )

    assert (result.expected, result.found, result.missing, result.surplus) == (3, 4, 1, 2)
    assert not result.is_exact


def test_the_report_finds_every_bot_and_nobody_else_and_is_that_of_the_page() -> None:
    connection = browser_events_of_lines()
    page = PAGE.read_text(encoding="utf-8")

    assert {browser for (browser,) in connection.execute("select browser from suspects").fetchall()} == set(
        bots()
    )
    assert page == with_answers(page, answers(connection, EXAMPLES)), "run `python -m demo.logs.report`"
    unsolved = 'select unsolved from expected_browsers where "browserHash" = ?'
    ((count,),) = connection.execute(unsolved, [UNSOLVED]).fetchall()
    assert f'{{"unsolved":{count},"actions":{count},"solved":false}}' in page
    ((views,),) = connection.execute(
        "select views from expected_counts where \"productId\" = 'product-1'"
    ).fetchall()
    assert f'{{"views":{views},"name":"{name_of(1)}"' in page


def test_the_examples_of_the_lookups_are_in_the_demo() -> None:
    apis = {api.model.name: api for api in load_catalog((system_folder("logs"),)).apis}

    assert apis["browser-actions"].lookups[0].example == UNSOLVED in bots()
    products = {str(entry.values["productId"]) for entry in first_entries()}
    assert len(products) == PRODUCTS
    assert {apis[name].lookups[0].example for name in ("products", "product-views")} <= products
