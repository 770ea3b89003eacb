"""The events of a log as a table of DuckDB: the columns that the rules of a read model use, and their keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa

from include.declarations.event_types.event_columns import (
    KEY,
    OFFSET,
    PARTITION,
    VALUE,
    resolved,
    shared_fields,
    type_column,
)
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.record_schema import RecordSchema
from include.replay.fold_sql import FoldSql, NotTranslatedError

EVENTS = "events"
EVENT_TIME = "occurredOn"
ALWAYS = (PARTITION, OFFSET, EVENT_TIME)
OWN = frozenset({"key", "is_source_key"})


class ColumnsMissingError(FoldlakeError):
    """Rows lack a column that the rules use; the message says which."""


class EventUse(Protocol):
    """A further use of the events that a check reads."""

    @property
    def columns(self) -> frozenset[tuple[str, ...]]:
        """The columns that it uses, as in FoldSql."""

    def use(self, connection: duckdb.DuckDBPyConnection, event_sources: str) -> None:
        """Use the table of events. event_sources: where they were read from, in words."""


@dataclass(frozen=True)
class EventRelation:
    """A table of events. A column has the name by which the rules use it.

    Beside these: `key`, the read model's; `is_source_key`, whether that is the key of the event's record; `record:partition`, `record:offset`
    and `occurredOn`.

    only_key: only events of this key are added; None: those of all keys.
    """

    model: ReadModel
    rules: FoldSql
    only_key: str | None = None

    def create(
        self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema, database: str = "memory"
    ) -> None:
        """Create the table without rows in a database of the connection. schema: of the batches that are appended."""
        connection.register("batch", schema.empty_table())
        connection.execute(f"CREATE TABLE {database}.{EVENTS} AS {self._query()}")
        connection.unregister("batch")

    def append(self, connection: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch]) -> None:
        """Add events, in batches as include/replay/log_events.py yields them; adds none if that raises an error.

        In one transaction: a database in a file would write the rows of a small one twice.
        """
        connection.begin()
        try:
            for batch in batches:
                connection.register("batch", batch)
                self._insert(connection, self._query())
                connection.unregister("batch")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def append_rows(self, connection: duckdb.DuckDBPyConnection, rows: str) -> None:
        """Add the events of a query, which has the columns of the batches, but neither `record:key` nor `record:timestamp`. Other columns of the table are null.

        `is_source_key` is false, which makes no difference unless a key has events in several partitions: no record has its own key there.

        Raises ColumnsMissingError where the rules use a column that the query lacks.
        """
        query = self._query(rows, is_source_key="false")
        try:
            found, wanted = (
                connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {described})").fetchall()
                for described in (query, EVENTS)
            )
        except duckdb.BinderException as error:
            raise ColumnsMissingError(str(error)) from error
        if not set(found) <= set(wanted):
            raise ColumnsMissingError(", ".join(name for name, _ in sorted(set(found) - set(wanted))))
        self._insert(connection, query)

    @property
    def names(self) -> frozenset[str]:
        """The names that the rules use, of columns and of the fields in them, in lower case; `*` if they use the struct of an event type as a whole."""
        types = {type_column(reader.name).casefold() for reader in self.model.event_schemas}
        found = {EVENT_TIME.casefold()}
        for first, *rest in self.rules.columns | self.rules.key_columns:
            is_whole = not rest and resolved(first, self.model.event_schemas).casefold() in types
            found.add("*" if is_whole else (rest[0] if rest else first).casefold())
        return frozenset(found)

    def count(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Return the number of events."""
        row = connection.execute(f"SELECT count(*) FROM {EVENTS}").fetchone()
        assert row is not None  # noqa: S101 - an aggregate without groups has one row
        return int(row[0])

    def _insert(self, connection: duckdb.DuckDBPyConnection, query: str) -> None:
        inserted = f"INSERT INTO {EVENTS} BY NAME {query}"
        if self.only_key is None:
            connection.execute(inserted)
        else:
            connection.execute(f"{inserted} AND key = ?", [self.only_key])

    def _query(self, rows: str = "batch", is_source_key: str = "") -> str:
        """Return the events of some rows. is_source_key: as a condition; empty: the rows have the keys of their records."""
        inner = self._columns()
        # The key may use columns that the fold does not use.
        of_fold = {first.casefold() for first, *_ in self.rules.columns}
        kept = [name for name in inner if name in ALWAYS or name.casefold() in of_fold]
        if not OWN.isdisjoint(name.casefold() for name in kept):
            raise NotTranslatedError(f"a rule uses a column that is named as one of {', '.join(sorted(OWN))}")
        named = f"SELECT *, {', '.join(self._shared())} FROM {rows}"
        columns = ", ".join(f'{expression} AS "{name}"' for name, expression in inner.items())
        own = "" if is_source_key else f'"{KEY}" AS "{KEY}:", '
        keyed = f"SELECT {own}{columns} FROM ({named})"
        names = ", ".join(f'"{name}"' for name in kept)
        key = self.rules.key
        is_source_key = is_source_key or f'"{KEY}:" = {key}'
        events = f"SELECT {key} AS key, {is_source_key} AS is_source_key, {names} FROM ({keyed})"
        # An event without a key is a dead letter, as is one of a re-keyed topic whose record has another key.
        return f"SELECT * FROM ({events}) WHERE {'is_source_key' if self.model.rekeyed_from else 'key IS NOT NULL'}"

    def _shared(self) -> Iterable[str]:
        """Yield the fields of all event types that the rules use."""
        readers = self.model.event_schemas
        for name in shared_fields(readers):
            if name.casefold() in self.names:
                values = ", ".join(f'"{type_column(reader.name)}"."{name}"' for reader in readers)
                yield f'coalesce({values}) AS "{name}"'

    def _columns(self) -> dict[str, str]:
        """Return the expression of each column that the rules use, by its name; names that differ by case are one column."""
        readers = self.model.event_schemas
        types = {type_column(reader.name).casefold(): reader for reader in readers}
        names = {name.casefold(): name for name in ALWAYS}
        parts: dict[str, set[str | None]] = {name: {None} for name in ALWAYS}
        for first, *rest in sorted(self.rules.columns | self.rules.key_columns):
            name = names.setdefault(first.casefold(), first)
            parts.setdefault(name, set()).add(rest[0].casefold() if rest else None)
        found = {}
        for name, fields in parts.items():
            internal = resolved(name, readers)
            if internal == VALUE:
                raise NotTranslatedError("a rule uses the bytes of the event's record")
            reader = types.get(internal.casefold())
            is_whole = None in fields
            found[name] = (
                f'"{internal}"' if is_whole or reader is None else _narrowed(internal, reader, fields)
            )
        return found


def _narrowed(column: str, reader: RecordSchema, fields: Iterable[str | None]) -> str:
    """Return a struct with some of its fields."""
    wanted = set(fields)
    packed = ", ".join(
        f'"{name}" := "{column}"."{name}"' for name in reader.fields if name.casefold() in wanted
    )
    return f'CASE WHEN "{column}" IS NOT NULL THEN struct_pack({packed}) END'
