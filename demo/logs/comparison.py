"""Compares what each branch of the system `logs` has written with the oracle, record by record."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import duckdb
import fastavro
import pyarrow as pa
from confluent_kafka import Message

from demo.log_tables import create_table, messages
from demo.logs.lines import LogLine
from demo.logs.loading import TOPIC, bytes_of
from demo.logs.oracle import oracle
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import split
from include.settings import Settings

TEXT, LONG, TIME = pa.string(), pa.int64(), pa.timestamp("ms", "UTC")
PLACE = {"key": TEXT, "partition": pa.int32(), "offset": LONG}
EVENTS = {"browserHash": TEXT, "occurredOn": TIME, "kind": TEXT, "action": TEXT, "solved": pa.bool_()}


def read_topic(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    table: str,
    topic: str,
    event_type: str,
    columns: dict[str, pa.DataType],
) -> None:
    """Create a table of the records of a topic that are of an event type: key, partition, offset, and these fields.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    registry = SchemaRegistry(settings.registry.connection)

    def rows() -> Iterator[tuple[Any, ...]]:
        for message in messages(settings, topic):
            schema_id, payload = split(message.value() or b"")
            schema = registry.schema_by_id(schema_id)
            if schema is not None and schema.name == event_type:
                record = _decoded(payload, schema.text, schema.parsed)
                yield (*_place(message), *(record[name] for name in columns))

    create_table(connection, table, PLACE | columns, rows())


def read_letters(connection: duckdb.DuckDBPyConnection, settings: Settings, table: str, topic: str) -> None:
    """Create a table of the dead letters of a topic: reason and text. Raises KafkaUnavailableError."""

    def row(message: Message) -> tuple[Any, ...]:
        headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
        return headers["reason"].decode(), (message.value() or b"").decode(errors="replace")

    create_table(
        connection,
        table,
        {"reason": TEXT, "text": TEXT},
        map(row, messages(settings, f"{topic}.dead-letter")),
    )


_parsed: dict[str, Any] = {}


def _decoded(payload: bytes, text: str, parse: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if text not in _parsed:
        _parsed[text] = fastavro.parse_schema(parse())
    return cast("dict[str, Any]", fastavro.schemaless_reader(io.BytesIO(payload), _parsed[text], None))


def _place(message: Message) -> tuple[str, int | None, int | None]:
    return bytes_of(message.key()).decode(), message.partition(), message.offset()


SHOWN = 5


@dataclass(frozen=True)
class Branch:
    """A branch: its kind, what it writes, and the queries of what it must write and has written, with the same columns."""

    name: str
    kind: str
    output: str
    expected: str
    found: str


# Routes fix the order of lines of different threads: which action is a browser's fifth follows from what stands on `browser-events`.
REQUESTS = """
with numbered as (
  select "browserHash", kind, "offset", count(*) filter (kind = 'ACTION') over so_far as actions, bool_or(solved) over so_far as solved
  from found_events window so_far as (partition by "browserHash" order by "offset" rows unbounded preceding)
)
select "browserHash", actions from numbered where kind = 'ACTION' and actions = 5 and not solved
"""
BRANCHES = (
    Branch(
        "views",
        "route",
        "product-views",
        "from expected_views",
        'select "productId", "occurredOn" from found_views',
    ),
    Branch(
        "browser events",
        "route",
        "browser-events",
        "from expected_events",
        'select "browserHash", "occurredOn", kind, action, solved from found_events',
    ),
    Branch(
        "popular products",
        "emission",
        "popular-products",
        'select "productId", name from expected_counts join catalogue using ("productId") where views >= 1000',
        'select "productId", name from found_popular',
    ),
    Branch(
        "captcha requests",
        "emission",
        "captcha-requests",
        REQUESTS,
        'select "browserHash", actions from found_requests',
    ),
    Branch(
        "late actions",
        "route",
        "late-browser-actions",
        "from expected_late",
        'select "browserHash", "occurredOn", "windowStart", "writtenOn" from found_late',
    ),
    Branch(
        "dead letters", "dead letters", f"{TOPIC}.dead-letter", "from expected_letters", "from found_letters"
    ),
)
STATES = {
    "product-views": ("from expected_counts", {"productId": TEXT, "views": LONG}),
    "browser-actions": (
        "from expected_browsers",
        {"browserHash": TEXT, "actions": LONG, "solved": pa.bool_(), "unsolved": LONG},
    ),
    "browser-windows": (
        "from expected_windows",
        {"key": TEXT, "actions": LONG, "window_start": TIME, "window_end": TIME},
    ),
}


@dataclass(frozen=True)
class Result:
    """Numbers of records: expected, found, expected and missing, found and not expected. examples: some of those that differ."""

    expected: int
    found: int
    missing: int
    surplus: int
    examples: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether each expected record was found as often as it must be, and nothing else."""
        return not (self.missing or self.surplus)


class Check:
    """The comparison of one log with the oracle of its lines.

    names: the product ids of the catalogue, each with the name that an alert must have.
    """

    def __init__(self, settings: Settings, lines: Iterable[LogLine], names: Mapping[str, str]) -> None:
        self._settings = settings
        stream = settings.stream
        self.connection = oracle(lines, stream.allowed_lateness_s, stream.expiry_s)
        rows = iter(names.items())
        create_table(self.connection, "catalogue", {"productId": TEXT, "name": TEXT}, rows)

    def expected_rows(self, name: str) -> int:
        """Return the number of rows of a table of the oracle, without its prefix."""
        return _count(self.connection, f"expected_{name}")

    def read(self) -> None:
        """Read what the branches have written so far. Raises KafkaUnavailableError."""
        connection, settings = self.connection, self._settings
        read_topic(
            connection,
            settings,
            "found_views",
            "product-views",
            "ProductView",
            {"productId": TEXT, "occurredOn": TIME},
        )
        read_topic(connection, settings, "found_events", "browser-events", "BrowserEvent", EVENTS)
        read_topic(
            connection,
            settings,
            "found_popular",
            "popular-products",
            "PopularProduct",
            {"productId": TEXT, "name": TEXT, "views": LONG},
        )
        read_topic(
            connection,
            settings,
            "found_requests",
            "captcha-requests",
            "CaptchaRequest",
            {"browserHash": TEXT, "actions": LONG},
        )
        read_topic(
            connection,
            settings,
            "found_late",
            "late-browser-actions",
            "LateBrowserAction",
            {"browserHash": TEXT, "occurredOn": TIME, "windowStart": TIME, "writtenOn": TIME},
        )
        read_letters(connection, settings, "found_letters", TOPIC)

    def compare(self, branch: Branch) -> Result:
        """Compare a branch, as of the last `read`."""
        return compare(self.connection, branch.expected, branch.found)

    def compare_states(self, read_model: str, states: Mapping[str, Mapping[str, Any]]) -> Result:
        """Compare states of a read model by key. Products without a view, which the catalogue has, are left out."""
        expected, columns = STATES[read_model]
        rows = (
            (key, *(_value(columns[name], state[name]) for name in list(columns)[1:]))
            for key, state in states.items()
            if state.get("views") != 0
        )
        create_table(self.connection, "states", columns, rows)
        return compare(self.connection, expected, "from states")


def _value(kind: pa.DataType, value: object) -> object:
    """Return a value of a state, which has times as text if a node answered it."""
    return datetime.fromisoformat(value) if kind == TIME and isinstance(value, str) else value


def compare(connection: duckdb.DuckDBPyConnection, expected: str, found: str) -> Result:
    """Compare two queries with the same columns as multisets of rows."""
    connection.execute(f"create or replace temp table e as {expected}")
    connection.execute(f"create or replace temp table f as {found}")
    connection.execute("create or replace temp table missing as from e except all from f")
    connection.execute("create or replace temp table surplus as from f except all from e")
    numbers = [_count(connection, table) for table in ("e", "f", "missing", "surplus")]
    examples = connection.execute(f"from missing union all from surplus limit {SHOWN}").fetchall()
    expected_rows, found_rows, missing, surplus = numbers
    return Result(expected_rows, found_rows, missing, surplus, tuple(str(row) for row in examples))


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    found = connection.table(table).count("*").fetchone()
    assert found is not None  # noqa: S101 - an aggregate has one row
    return int(found[0])
