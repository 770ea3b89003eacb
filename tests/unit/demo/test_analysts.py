"""docs/analysts.md has the answers that its queries give on the data set, and a plot of each that has one."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import pytest
from deltalake import CommitProperties, write_deltalake

from demo.analysts.page import PAGE, PICTURES, answers, digest, rows_of, specification_text, specifications
from demo.analysts.questions import QUESTIONS, QUESTIONS_OF_A_RUN
from demo.baskets.dataset import data_file
from demo.examples_page import with_answers
from include.lake.sql_tables import connect
from include.lake.tags import CommitTag
from tests.support.documentation.page_blocks import Block, blocks_run

# As the events of the demo: one for each basket whose total is not 0.
EVENTS = """
create table events as
select 'FundsAdded' as event_type, 'basket-' || basket_id as id, timezone('UTC', transaction_timestamp) as "occurredOn",
       household_id::varchar as "customerId", sum(round(sales_value, 2)::decimal(18, 2))::decimal(18, 2) as amount,
       strftime(transaction_timestamp, '%Y-%m') as occurred_month, 0 as source_partition,
       row_number() over (order by transaction_timestamp, basket_id) - 1 as source_offset
from read_parquet($transactions) group by basket_id, household_id, transaction_timestamp having sum(round(sales_value, 2)::decimal(18, 2)) <> 0
"""
# The folds of version 1 and of the version 2 of which the page tells.
STATES = """
select "customerId" as key, sum(amount {bonus})::decimal(38, 2) as amount, count(*) as event_count from events group by all
"""
# Before the time whose state the page queries.
COMMITTED_AT = datetime(2026, 11, 1, tzinfo=UTC)
BONUS = "+ if(amount >= 100, round(amount * 0.01, 2), 0)"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a lake as the demo and a rebuild leave it, with results of two checks."""
    root = tmp_path_factory.mktemp("lake")
    source = duckdb.connect()
    source.execute("set timezone = 'UTC'")
    source.execute(EVENTS, {"transactions": str(data_file("transactions"))})
    events = source.execute("from events").fetch_arrow_table()
    write_deltalake(str(root / "events" / "balance"), events, partition_by=["occurred_month"])
    for version, bonus in ((1, ""), (2, BONUS)):
        tag = CommitTag("balance", version, version, "promotion").to_json()
        write_deltalake(
            str(root / "balance"),
            source.execute(STATES.format(bonus=bonus)).fetch_arrow_table(),
            mode="overwrite",
            commit_properties=CommitProperties(custom_metadata={"userMetadata": tag}),
        )
    for commit in (root / "balance" / "_delta_log").glob("*.json"):
        at = f'"timestamp":{COMMITTED_AT.timestamp() * 1000:.0f}'
        commit.write_text(
            re.sub(r'"timestamp":\d+', at, commit.read_text(encoding="utf-8")), encoding="utf-8"
        )
    checks = """
        select 'check-' || n as run_id, 'balance' as read_model, 1 as version, 'full' as mode, 'no key is missing' as expectation, 'lake' as store, true as passed,
               10::bigint as checked, 0::bigint as failed, n::double as duration_s, now() + to_hours(n::integer) as checked_at
        from range(2) as runs(n)
    """
    write_deltalake(str(root / "_quality"), source.execute(checks).fetch_arrow_table())
    with connect(str(root)) as connection:
        yield connection


def test_the_page_has_the_answers_to_its_questions(connection: duckdb.DuckDBPyConnection) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_answers(page, answers(connection, QUESTIONS), "questions"), (
        "run `python -m demo.analysts.page` after the demo"
    )


@pytest.mark.parametrize("block", blocks_run("analysts"), ids=lambda block: block.place)
def test_a_query_of_the_page_has_rows(connection: duckdb.DuckDBPyConnection, block: Block) -> None:
    assert connection.execute(block.text).fetchall()


def test_each_plot_is_drawn_from_these_answers(connection: duckdb.DuckDBPyConnection) -> None:
    for name, spec in specifications(connection, QUESTIONS).items():
        assert (PICTURES / f"{name}.vl.json").read_text(encoding="utf-8") == specification_text(spec), name
        assert digest(spec) in (PICTURES / f"{name}.svg").read_text(encoding="utf-8"), name


def test_the_queries_that_depend_on_the_run_can_be_answered(connection: duckdb.DuckDBPyConnection) -> None:
    text = PAGE.read_text(encoding="utf-8")

    for question in QUESTIONS_OF_A_RUN:
        rows = rows_of(connection, question)
        assert rows, question.title
        assert len(rows[0]) == len(question.columns), question.title
        assert question.query.strip() in text, question.title


def test_every_plot_of_the_folder_belongs_to_a_question() -> None:
    expected = {question.picture for question in (*QUESTIONS, *QUESTIONS_OF_A_RUN) if question.picture}

    assert {path.name.partition(".")[0] for path in PICTURES.iterdir()} == expected
    for path in PICTURES.glob("*.vl.json"):
        assert digest(json.loads(path.read_text(encoding="utf-8"))) in path.with_name(
            path.name.replace(".vl.json", ".svg")
        ).read_text(encoding="utf-8")


def test_the_demo_data_agrees_with_itself(connection: duckdb.DuckDBPyConnection) -> None:
    (found,) = (
        rows_of(connection, question)
        for question in QUESTIONS
        if question.title.startswith("Does each state")
    )

    customers, different, total = found[0]
    assert (customers, different, f"{total:,}") == (2_469, 0, "4,596,039.58")
