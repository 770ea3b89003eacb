"""Examples of queries of the line items, and their results for docs/pos.md: `python -m demo.pos.analysis` writes them there.

The queries read the event table `trend` in the lake, with DuckDB, after `./foldlake demo pos`.
"""

from collections.abc import Sequence
from typing import Any

import duckdb

from demo.baskets.dataset import data_file
from demo.examples_page import Example, answers, line_chart, with_answers
from demo.pos.outputs import open_line_items, trend_declaration
from include.lake.tables import table_path
from include.settings import CHECKOUT, Settings

PAGE = CHECKOUT / "docs" / "pos.md"
# The same from the raw files, for the test of the page, which has no stack.
DATA_SET = """
create table trend as
select transaction_timestamp as "occurredOn", strftime(transaction_timestamp, '%Y-%m') as occurred_month,
       basket_id::varchar as "invoiceNumber", store_id::varchar as "storeId", product_id::varchar as "itemCode",
       concat_ws(', ', coalesce(product_type, product_category, department, 'UNKNOWN PRODUCT'), package_size) as "itemDescription",
       quantity as "itemQty", round(sales_value, 2)::decimal(18, 2) as "totalValue",
       if(household_id in (select household_id from read_parquet($demographics)), 'PRIME', 'NON-PRIME') as "customerType"
from read_parquet($transactions) as transactions left join read_parquet($products) as products using (product_id)
"""


def _best_sellers(rows: Sequence[tuple[Any, ...]]) -> str:
    lines = [f"| {name} | {invoices:,} | {turnover:,} |" for name, invoices, turnover in rows]
    return "\n".join(["| item | line items | turnover |", "|---|---:|---:|", *lines])


def _prime(rows: Sequence[tuple[Any, ...]]) -> str:
    return line_chart(
        "Share of PRIME customers in the turnover, % by month of 2017",
        "%",
        [int(month.removeprefix("2017-")) for month, _ in rows],
        [[float(share) for _, share in rows]],
    )


EXAMPLES = (
    Example(
        "Best sellers",
        """
select "itemDescription", count(*) as items, sum("totalValue") as turnover
from trend group by all order by turnover desc limit 5
""",
        _best_sellers,
    ),
    Example(
        "Share of PRIME customers",
        """
select occurred_month, 100 * sum("totalValue") filter ("customerType" = 'PRIME') / sum("totalValue") as share
from trend where occurred_month < '2018-01' group by all order by occurred_month
""",
        _prime,
    ),
)


def line_items(path: str) -> duckdb.DuckDBPyConnection:
    """Return a connection with a view `trend` of the event table at this path."""
    connection = duckdb.connect()
    open_line_items(connection, path, "trend")
    return connection


def line_items_of_data_set() -> duckdb.DuckDBPyConnection:
    """Return a connection with a table `trend` made of the raw files. Raises DatasetMissingError when they are not installed."""
    connection = duckdb.connect()
    names = ("transactions", "products", "demographics")
    connection.execute(DATA_SET, {name: str(data_file(name)) for name in names})
    return connection


if __name__ == "__main__":
    found = answers(line_items(table_path(Settings().lake_root, trend_declaration().name)), EXAMPLES)
    PAGE.write_text(with_answers(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
