"""Expressions in SQL are parsed without Spark; an error has its place."""

import re

import pytest

from include.declarations.rules.expression import parsed, place, used_columns
from include.errors import ReadModelError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(amount", "'sum(amount': line 1, column 10: Expecting )"),
        ("", "No expression was parsed"),
        ("amount AS total", "is not one expression"),
        ("SELECT amount", "is not one expression"),
        ("(SELECT max(amount) FROM events)", "is not one expression"),
        ("amount; amount", "is not one expression"),
        ("DROP TABLE balance", "is not one expression"),
        ("'unclosed", "'unclosed"),
        ("CASE WHEN a THEN 1", "Expected END"),
    ],
)
def test_an_error_of_syntax_names_the_text_and_the_place(text: str, message: str) -> None:
    with pytest.raises(ReadModelError, match=re.escape(message)):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("sum(CASE WHEN event_type = 'X' THEN -amount ELSE fee END)", ["event_type", "amount", "fee"]),
        ("item.item.itemCode || state.points", ["item.item.itemCode", "state.points"]),
        (
            "max_by(struct(courier, offset), struct(occurredOn, timestamp)).courier",
            ["courier", "offset", "occurredOn", "timestamp"],
        ),
        ("transform(items, (item, index) -> struct(item AS item, index AS index))", ["items"]),
        ("filter(starts, start -> start > written - INTERVAL 5 SECONDS)", ["starts", "written"]),
        ("`record:offset` + `event:Rating`.stars", ["record:offset", "event:Rating.stars"]),
        ("'amount'", []),
        ("count(*)", []),
    ],
)
def test_the_columns_of_an_expression_are_found_in_its_order(text: str, columns: list[str]) -> None:
    assert [column.name for column in used_columns(text)] == columns


def test_each_column_has_its_place() -> None:
    text = "sum(\n  amount +\n  fee)"

    assert [place(text, column.start) for column in used_columns(text)] == [
        "line 2, column 3",
        "line 3, column 3",
    ]
