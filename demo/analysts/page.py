"""Answers the questions of docs/analysts.md from the lake: `python -m demo.analysts.page` writes answers and plots, after the demo.

A plot is a specification of Vega-Lite, and a picture of it. Pictures need the packages of requirements-analysis.txt.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from demo.analysts.charts import Spec
from demo.analysts.questions import QUESTIONS, QUESTIONS_OF_A_RUN, Question
from demo.examples_page import with_answers
from include.lake.sql_tables import connect
from include.settings import CHECKOUT, Settings

PAGE = CHECKOUT / "docs" / "analysts.md"
PICTURES = CHECKOUT / "docs" / "images" / "analysts"
VEGA_LITE = "5.20"


def rows_of(connection: duckdb.DuckDBPyConnection, question: Question) -> list[tuple[Any, ...]]:
    """Return the answer to a question."""
    return connection.execute(question.query).fetchall()


def specifications(connection: duckdb.DuckDBPyConnection, questions: Iterable[Question]) -> dict[str, Spec]:
    """Return picture -> specification, of each question that has a plot."""
    return {
        question.picture: question.chart(question.title, question.columns, rows_of(connection, question))
        for question in questions
        if question.chart is not None
    }


def answers(connection: duckdb.DuckDBPyConnection, questions: Iterable[Question]) -> str:
    """Return every question with its query and its answer, as Markdown."""
    return "\n\n".join(part for question in questions for part in _answer(connection, question))


def specification_text(spec: Spec) -> str:
    """Return the content of a specification's file."""
    return json.dumps(spec, indent=1) + "\n"


def digest(spec: Spec) -> str:
    """Return the digest of a specification, which its picture contains."""
    return hashlib.sha256(specification_text(spec).encode()).hexdigest()


def _answer(connection: duckdb.DuckDBPyConnection, question: Question) -> Iterator[str]:
    yield f"### {question.title}"
    yield f"```sql\n{question.query.strip()}\n```"
    if question.chart is None:
        yield _table(question.columns, rows_of(connection, question))
    else:
        yield f"![{question.title}](images/analysts/{question.picture}.svg)"
    if question.about:
        yield question.about


def _table(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    rows = list(rows)
    numbers = [all(isinstance(row[n], int | float | Decimal) for row in rows) for n, _ in enumerate(columns)]
    lines = [columns, ("---:" if is_number else "---" for is_number in numbers)]
    lines += [map(_text, row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:,}" if isinstance(value, int | Decimal) else str(value)


def draw(
    connection: duckdb.DuckDBPyConnection, questions: Iterable[Question], folder: Path = PICTURES
) -> None:
    """Write the plots of these questions into a folder: each specification and its picture. Needs the package vl-convert-python."""
    import vl_convert  # noqa: PLC0415 - optional: only who writes the pages needs it

    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in specifications(connection, questions).items():
        (folder / f"{name}.vl.json").write_text(specification_text(spec), encoding="utf-8")
        picture = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
        (folder / f"{name}.svg").write_text(f"{picture}\n<!-- {digest(spec)} -->\n", encoding="utf-8")


def main() -> None:
    """Write the answers into the page, and the plots beside it."""
    connection = connect(Settings().lake_root)
    page = PAGE.read_text(encoding="utf-8")
    page = with_answers(page, answers(connection, QUESTIONS), "questions")
    page = with_answers(page, answers(connection, QUESTIONS_OF_A_RUN), "run")
    draw(connection, (*QUESTIONS, *QUESTIONS_OF_A_RUN))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
