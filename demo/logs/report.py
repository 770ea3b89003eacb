"""The bot report for docs/logs.md: `python -m demo.logs.report` makes it from the event table `browser-events`, after the demo.

The queries read the lake with DuckDB.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import duckdb_ext

from demo.examples_page import Example, answers, with_answers
from demo.logs.lines import log_lines
from demo.logs.oracle import oracle
from include.lake.tables import table_path
from include.settings import CHECKOUT, Settings

PAGE = CHECKOUT / "docs" / "logs.md"
TABLE = "browser-events"
LINES = 60_000
# A person takes minutes for what a bot does in one: far above the median means a machine.
SUSPECTS = """
create or replace view browsers as
select "browserHash" as browser, count(*) filter (kind = 'ACTION') as actions, bool_or(solved) as has_solved,
       count(*) filter (kind = 'CAPTCHA' and not solved) as failed_captchas,
       60 * count(*) filter (kind = 'ACTION') / epoch(max("occurredOn") - min("occurredOn")) as actions_per_minute
from browser_events group by all;
create or replace view suspects as
select * from browsers where actions_per_minute > 5 * (select median(actions_per_minute) from browsers);
"""


def _suspects(rows: Sequence[tuple[Any, ...]]) -> str:
    lines = [
        f"| `{browser}` | {actions:,} | {rate:.1f} | {failed:,} | {'yes' if solved else 'no'} |"
        for browser, actions, rate, failed, solved in rows
    ]
    head = "| browser | actions | actions per minute | captchas not solved | solved one |"
    return "\n".join([head, "|---|---:|---:|---:|---|", *lines])


def _shares(rows: Sequence[tuple[Any, ...]]) -> str:
    return "\n".join(
        ["| | browsers | share of the actions |", "|---|---:|---:|"]
        + [f"| {name} | {browsers:,} | {share:.1f} % |" for name, browsers, share in rows]
    )


EXAMPLES = (
    Example(
        "Suspected bots, the five with the most actions",
        """
select browser, actions, actions_per_minute, failed_captchas, has_solved
from suspects order by actions desc, browser limit 5
""",
        _suspects,
    ),
    Example(
        "Their share of all actions",
        """
select if(browser in (select browser from suspects), 'suspected bots', 'everybody else') as who, count(*) as browsers,
       100 * sum(actions) / (select sum(actions) from browsers) as share
from browsers group by all order by share
""",
        _shares,
    ),
)


def browser_events(path: str) -> duckdb.DuckDBPyConnection:
    """Return a connection with the event table at this path as the view `browser_events`, and the views of the report."""
    connection = duckdb.connect()
    connection.execute(f"set extension_directory = '{Path(*list(duckdb_ext.__path__)[:1]) / 'extensions'}'")
    connection.execute("load delta")
    connection.execute("set timezone = 'UTC'")
    quoted = path.replace("'", "''")
    connection.execute(f"create view browser_events as from delta_scan('{quoted}')")
    connection.execute(SUSPECTS)
    return connection


def browser_events_of_lines(count: int = LINES) -> duckdb.DuckDBPyConnection:
    """Return a connection with the same views, of what the oracle makes of the first lines."""
    connection = oracle(log_lines(count))
    connection.execute("create view browser_events as from expected_events")
    connection.execute(SUSPECTS)
    return connection


if __name__ == "__main__":
    found = answers(browser_events(table_path(Settings().lake_root, TABLE)), EXAMPLES)
    PAGE.write_text(with_answers(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
