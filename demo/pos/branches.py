"""Compares what each branch of the system `pos` wrote with the oracle, record by record, and the table of line items, row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import duckdb
import pyarrow as pa

from demo.pos.loading import TOPIC
from demo.pos.oracle import RATE, oracle
from demo.pos.outputs import LONG, POINTS, TEXT, open_line_items, read_outputs, read_source, trend_declaration
from include.lake.event_table_check import check_event_table
from include.lake.tables import table_path
from include.settings import Settings

SHOWN = 5


@dataclass(frozen=True)
class Branch:
    """A branch of the system: its kind, and the topics that it reads and writes."""

    name: str
    kind: str
    source: str
    output: str


TILLS = Branch("tills", "loader", "", TOPIC)
SHIPMENTS = Branch("shipments", "route", TOPIC, "shipment-service")
TREND = Branch("trend", "route", TOPIC, "trend-records")
LOYALTY = Branch("loyalty", "route", TOPIC, "loyalty-invoices")
NOTIFICATIONS = Branch("notifications", "emission", "loyalty-invoices", "loyalty-management-service")
BRANCHES = (TILLS, SHIPMENTS, TREND, LOYALTY, NOTIFICATIONS)
# Branch -> the query of what it must write, and that of what it has written, with the same columns.
#
# The points so far depend on the order in which the invoices of all stores came to the topic of the re-keying route, which is fixed
# from then on: the totals are the running sums of the oracle's points in this order. `number` is the place among the notifications of
# a card, so that an emission in another order is wrong.
QUERIES = {
    "tills": ("from expected_tills", "select id from found_tills"),
    "shipments": (
        "from expected_shipments left join found_tills using (id)",
        'select id, key, "totalAmount", "numberOfItems", digest from found_shipments',
    ),
    "trend": (
        "from expected_trend",
        'select id, key, "invoiceNumber", "itemCode", "itemQty", "totalValue", "customerType", "deliveryType" from found_trend',
    ),
    "loyalty": (
        "from expected_loyalty",
        'select id, key, "invoiceNumber", "storeId", amount, kind from found_loyalty',
    ),
    "notifications": (
        """
select id, expected_earned.key, expected_earned."invoiceNumber", expected_earned.kind, expected_earned.amount as "totalAmount",
       earned as "earnedLoyaltyPoints", sum(earned) over card as "totalLoyaltyPoints", row_number() over card as number
from expected_earned left join (from found_loyalty qualify row_number() over (partition by id order by "offset") = 1) using (id)
window card as (partition by expected_earned.key order by "offset" rows unbounded preceding)""",
        """
select id, key, "invoiceNumber", kind, "totalAmount", "earnedLoyaltyPoints", "totalLoyaltyPoints",
       row_number() over (partition by key order by "offset") as number
from found_notifications""",
    ),
}
LINE_ITEMS = """
select id, "storeId" as key, "invoiceNumber", "itemCode", "itemQty", "totalValue", "customerType", "deliveryType"
from found_line_items where occurred_month = strftime("occurredOn", '%Y-%m')
"""


@dataclass(frozen=True)
class Result:
    """Numbers of records of a branch: those expected and found, the ids that are missing, surplus records of the same id, and wrong ones.

    wrong: records with a wrong value, and records that the oracle does not have. examples: some of the ids that differ.
    """

    name: str
    expected: int
    found: int
    missing: int
    doubled: int
    wrong: int
    examples: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether every expected record was found once, and nothing else."""
        return not (self.missing or self.doubled or self.wrong)


class Check:
    """The comparison of one log with the oracle.

    first: the number of the oldest invoices that were loaded; 0 for all. rate: points for each unit of an invoice's total.
    """

    def __init__(self, settings: Settings, first: int = 0, rate: Decimal = RATE) -> None:
        self._settings = settings
        self._connection = oracle(first, rate)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The database of the oracle, and of what was read."""
        return self._connection

    def expected(self, branch: Branch) -> int:
        """Return the number of records that a branch must write."""
        table = "earned" if branch is NOTIFICATIONS else branch.name
        return _number(self._connection, f"select count(*) from expected_{table}")  # noqa: S608 - a constant

    def compare(self, branch: Branch, on_record: Callable[[], None] = lambda: None) -> Result:
        """Read what a branch has written, and compare it. Branches must be compared in the order of BRANCHES.

        on_record: called for each record that was read. Raises KafkaUnavailableError.
        """
        read = read_source if branch is TILLS else read_outputs
        read(self._connection, self._settings, f"found_{branch.name}", branch.output, on_record)
        return compare(self._connection, branch.name, *QUERIES[branch.name])

    def compare_table(self) -> Result:
        """Compare the event table in the lake. A row of another month than its own is missing, one that was appended twice is wrong.

        Raises EventTableMissingError when nothing has been appended yet.
        """
        declared, lake_root = trend_declaration(), self._settings.lake_root
        origins = check_event_table(lake_root, declared)
        open_line_items(self._connection, table_path(lake_root, declared.name), "found_line_items")
        result = compare(self._connection, f"lake/{declared.name}", QUERIES["trend"][0], LINE_ITEMS)
        misplaced = origins.doubled + origins.out_of_bounds + abs(origins.expected_rows - origins.rows)
        return replace(result, wrong=result.wrong + misplaced)

    def cards(self) -> list[str]:
        """Return the numbers of all cards that have points."""
        return [card for (card,) in self._connection.execute("select id from expected_points").fetchall()]

    def compare_points(self, name: str, states: Sequence[tuple[str, Decimal, Decimal, int, int]]) -> Result:
        """Compare the states of cards, such as those that a node answered: card, points, spent, invoices, cancellations."""
        schema = pa.schema(
            {"id": TEXT, "points": POINTS, "spent": POINTS, "invoices": LONG, "cancellations": LONG}
        )
        columns = list(zip(*states, strict=True)) or [()] * len(schema)
        arrays = [pa.array(values, schema.field(number).type) for number, values in enumerate(columns)]
        self._connection.register("states", pa.table(arrays, schema=schema))
        return compare(self._connection, name, "from expected_points", "from states")


def compare(connection: duckdb.DuckDBPyConnection, name: str, expected: str, found: str) -> Result:
    """Compare two queries with the same columns, one of which is `id`."""
    connection.execute(f"create or replace temp table e as {expected}")
    connection.execute(f"create or replace temp table f as {found}")
    columns = [column for (column, *_) in connection.execute("describe e").fetchall()]
    listed = ", ".join(f'"{column}"' for column in columns)
    connection.execute(
        f"create or replace temp table wrong as select distinct id from (select {listed} from f except select {listed} from e)"  # noqa: S608
    )
    differing = connection.execute(
        f"select id from wrong union (select id from e except select id from f) order by id limit {SHOWN}"  # noqa: S608
    ).fetchall()
    return Result(
        name=name,
        expected=_number(connection, "select count(*) from e"),
        found=_number(connection, "select count(*) from f"),
        missing=_number(
            connection, "select count(*) from e where id not in (select id from f where id is not null)"
        ),
        doubled=_number(connection, "select count(*) - count(distinct id) from f"),
        wrong=_number(connection, "select count(*) from wrong"),
        examples=tuple(text for (text,) in differing),
    )


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None  # noqa: S101 - an aggregate has one row
    return int(found[0])
