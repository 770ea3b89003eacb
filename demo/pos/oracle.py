"""What each branch of the system `pos` must give, computed by DuckDB from the raw files of the data set.

Independent of how the events are made: other arithmetic (decimals instead of cents), another order of evaluation (joins instead of
loops), and the rules of what is made up written a second time.
"""

from decimal import Decimal

import duckdb

from demo.baskets.dataset import data_file
from demo.pos.made_up import CANCELLED_BELOW, DELIVERED_BELOW, TO_DIGITS

RATE = Decimal("0.02")
# Decimal digits for the hexadecimal ones a to f, as `made_up.digits` has them.
LETTERS, DIGITS = ("".join(map(chr, codes)) for codes in (TO_DIGITS.keys(), TO_DIGITS.values()))

TABLES = f"""
create table purchases as
select basket_id, any_value(store_id)::varchar as store, any_value(household_id) as household,
       any_value(transaction_timestamp) as bought_at, sum(round(sales_value, 2)::decimal(18, 2)) as total, count(*) as items,
       substr(sha256('till/' || basket_id), 1, 2) < '{DELIVERED_BELOW}' as is_delivered,
       substr(sha256('cancellation/' || basket_id), 1, 4) < '{CANCELLED_BELOW}' as is_cancelled
from read_parquet($transactions) group by basket_id
order by bought_at, basket_id limit coalesce(nullif($first, 0), 1000000000);

create table invoices as
select basket_id::varchar as invoice, store, bought_at, total, items, is_delivered, is_cancelled and is_prime as is_cancelled, is_prime,
       translate(substr(sha256('card/' || household), 1, 16), '{LETTERS}', '{DIGITS}') as card
from (select *, household in (select household_id from read_parquet($demographics)) as is_prime from purchases);
"""  # noqa: S608 - two constants

VIEWS = {
    "tills": """
select 'invoice-' || invoice as id from invoices union all select 'cancellation-' || invoice from invoices where is_cancelled
""",
    "shipments": """
select 'invoice-' || invoice as id, store as key, total as "totalAmount", items as "numberOfItems" from invoices where is_delivered
""",
    "trend": """
select 'invoice-' || basket_id || '/' || row_number() over (partition by basket_id order by product_id) as id, store as key,
       basket_id::varchar as "invoiceNumber", product_id::varchar as "itemCode", quantity as "itemQty",
       round(sales_value, 2)::decimal(18, 2) as "totalValue",
       if(is_prime, 'PRIME', 'NON-PRIME') as "customerType", if(is_delivered, 'HOME-DELIVERY', 'TAKE-AWAY') as "deliveryType"
from read_parquet($transactions) join invoices on invoice = basket_id::varchar
""",
    "loyalty": """
select 'invoice-' || invoice as id, card as key, invoice as "invoiceNumber", store as "storeId", total as amount, 'PURCHASE' as kind
from invoices where is_prime
union all
select 'cancellation-' || invoice, card, invoice, store, -total, 'CANCELLATION' from invoices where is_cancelled
""",
    "earned": """
select *, round(amount * $rate::decimal(4, 2), 2)::decimal(18, 2) as earned from expected_loyalty
""",
    "points": """
select key as id, sum(earned)::decimal(28, 2) as points, sum(amount)::decimal(28, 2) as spent,
       count(*) filter (kind = 'PURCHASE') as invoices, count(*) filter (kind = 'CANCELLATION') as cancellations
from expected_earned group by key
""",
}


def oracle(first: int = 0, rate: Decimal = RATE) -> duckdb.DuckDBPyConnection:
    """Return a connection with a table `expected_<name>` for each of VIEWS.

    first: the number of the oldest invoices; 0 for all. rate: points for each unit of an invoice's total, 2 decimals at most.
    Raises DatasetMissingError when the data set is not installed.
    """
    connection = duckdb.connect()
    values = {
        "transactions": str(data_file("transactions")),
        "demographics": str(data_file("demographics")),
        "first": first,
        "rate": rate,
    }
    statements = [text for text in TABLES.split(";") if text.strip()]
    statements += [f"create table expected_{name} as {select}" for name, select in VIEWS.items()]
    for statement in statements:
        used = {name: value for name, value in values.items() if f"${name}" in statement}
        connection.execute(statement, used)
    return connection
