"""`./foldlake demo` as run by a user: real input through the whole stack.

The last module of this folder by name: other tests rebuild and check all that is on the log, which need not have these events.
"""

import os
import subprocess
import sys

import pytest

from demo.analysts.page import PAGE, PICTURES, answers, specification_text, specifications
from demo.analysts.questions import QUESTIONS
from include.lake.sql_tables import connect
from include.settings import CHECKOUT, Settings, settings_environment


def command(settings: Settings, *words: str, timeout_s: float = 300) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *words],
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.timeout(900)
def test_demo_finds_every_balance_exact_on_both_nodes(full_stack: Settings) -> None:
    done = command(full_stack, "demo", timeout_s=880)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "data set" in done.stdout
    assert "2,469" in done.stdout
    assert "155,370" in done.stdout
    assert "4,596,039.58" in done.stdout


@pytest.mark.endurance
@pytest.mark.timeout(600)
def test_the_events_of_the_demo_are_asked_in_sql(full_stack: Settings) -> None:
    """Airflow appends them to the lake, where they are as in the log, and answer the questions of docs/analysts.md."""
    for words in (("compact", "events/balance"), ("quality", "events/balance")):
        done = command(full_stack, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "as in the log" in done.stdout

    query = "select count(*) as events, sum(amount) as total from events_balance where id like 'basket-%'"
    answer = command(full_stack, "sql", query, "--format", "json")

    assert answer.stdout == '[\n{"events":155370,"total":4596039.58}\n]\n', answer.stderr
    page = PAGE.read_text(encoding="utf-8")
    with connect(full_stack.lake_root) as connection:
        # Other tests add events of today.
        for question in (one for one in QUESTIONS if "occurred_month <" in one.query):
            text = answers(connection, [question])
            assert text in page, question.title
        drawn = specifications(connection, QUESTIONS[:1])
    for name, spec in drawn.items():
        assert (PICTURES / f"{name}.vl.json").read_text(encoding="utf-8") == specification_text(spec)
