"""The events of one key in a table of DuckDB, and the state after each of them as an aggregate of a window."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from confluent_kafka import murmur2

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    type_column,
)
from include.declarations.read_model import ReadModel
from include.declarations.rules.expression import parsed, used_columns
from include.kafka.avro.avro_types import AvroType
from include.kafka.logical_types import field_types
from include.kafka.topic_state import source_state
from include.position import EVENT_COUNT, Offsets
from include.replay.event_relation import EVENT_TIME, EVENTS, ColumnsMissingError, EventRelation
from include.replay.fold_sql import FoldSql, fold_sql, unwritten
from include.replay.json_values import json_object, time_text
from include.replay.log_events import event_batches, event_schema, events_at
from include.replay.table_events import TableEvents, TableProof, between, proved_table
from include.settings import Settings
from include.versions.explanation import ExplainedEvent
from include.versions.key_explanation import FoldedState

LOG = logging.getLogger("foldlake.explain")
WINDOW = "events_so_far"
STATE, COUNT, HAS_ENDED, UNWRITTEN = "state", "count", "has_ended", "unwritten"
STRING_KINDS = frozenset({"string", "enum"})


def is_record_key(model: ReadModel) -> bool:
    """Return whether a read model's key, which is no function, is the Kafka key of its events' records, so that it determines their partition."""
    if model.rekeyed_from is not None:
        return True
    key = str(model.key)
    columns = used_columns(key)
    if len(columns) != 1 or len(columns[0].parts) != 1 or parsed(key).sql("spark") != columns[0].name:
        return False
    (field,) = columns[0].parts
    if {schema.key_field for schema in model.event_schemas} != {field}:
        return False
    return all(_is_text(field_types(schema)[field]) for schema in model.event_schemas)


def read_key_log(settings: Settings, model: ReadModel, key: str, revisions: Iterable[int]) -> "TableKeyLog":
    """Return the events of a key up to the end of the log.

    Raises NotTranslatedError, KafkaUnavailableError, RegistryUnavailableError.
    """
    rules = [fold_sql(model, revision) for revision in sorted(set(revisions))]
    state = source_state(settings.kafka_connection, model.source_topic)
    since, partitions, record_key = state.starts, None, None
    if is_record_key(model):
        record_key = key.encode()
        own = int(murmur2(record_key, len(state.ends)))
        since, partitions = (
            Offsets({p: since.of(p) if p == own else end for p, end in state.ends.items()}),
            (own,),
        )
    log = TableKeyLog(
        model, key, rules, (since, state.ends), partial(events_at, settings, model.events, state.ends)
    )
    proved = proved_table(settings, model)
    if proved is not None:
        since = log.add_rows(*proved)
    log.add(event_batches(settings, model, since, state.ends, partitions=partitions, record_key=record_key))
    return log


class TableKeyLog:
    """The events of a key in a table in memory: see KeyLog.

    A rule that fails for an event raises duckdb.Error: Spark makes a dead letter of such an event, and not of others.
    """

    def __init__(
        self,
        model: ReadModel,
        key: str,
        rules: Sequence[FoldSql],
        bounds: tuple[Offsets, Offsets],
        read_at: Callable[[Mapping[int, Sequence[int]]], Iterable[pa.RecordBatch]],
    ) -> None:
        """Create the table, without events.

        Args:
            model: the read model.
            key: the key.
            rules: of the fold revisions whose states are computed.
            bounds: the offsets from which and up to which the log is read.
            read_at: returns the events at offsets of partitions, as events_at does.
        """
        shown = {TIMESTAMP, EVENT_TYPE, *(type_column(schema.name) for schema in model.event_schemas)}
        used: frozenset[tuple[str, ...]] = frozenset().union(*(one.columns for one in rules))
        columns = used | {(name,) for name in shown}
        self.model = model
        self.since, self.until = bounds
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET python_enable_replacements = false")
        self._key = key
        self._read_at = read_at
        self._events = EventRelation(model, replace(rules[0], columns=columns), key)
        # Without what is shown and not folded, which a table of the lake lacks.
        self._folded = replace(self._events, rules=replace(rules[0], columns=used))
        self._events.create(self._connection, event_schema(model))

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add those events in batches, as event_batches yields them, that are of the key; raises what `batches` raises."""
        self._events.append(self._connection, batches)

    def add_rows(self, table: TableEvents, proof: TableProof) -> Offsets:
        """Add the events of the key that an event table has, as far as it is proved; return the offsets from which on the log must be read.

        The rows that are shown are read from the log later.
        """
        ends = Offsets({p: min(proof.offsets.of(p), end) for p, end in self.until.items()}).merge(self.since)
        if not self.since.covers(proof.start):
            return self.since
        table.register(self._connection)
        condition = between(self.since, ends)
        if is_record_key(self.model):
            condition += f" AND {table.is_entity(self._key)}"
        try:
            self._folded.append_rows(self._connection, f"({table.query_of(self._folded, condition)})")
        except ColumnsMissingError as error:
            LOG.info("all events are read from the log: %s lacks %s", table.name, error)
            return self.since
        return ends

    def folded_state(self, revision: int, starts: Offsets) -> FoldedState:
        """See KeyLog."""
        rules = fold_sql(self.model, revision)
        ended = f"bool_or(coalesce({rules.ended or 'false'}, false))"
        query = f"SELECT {_packed(rules)} AS {STATE}, count(*) AS {COUNT}, {ended} AS {HAS_ENDED} FROM {EVENTS} WHERE {_counted_from(starts)}"
        ((row, types),) = self._rows(self._checked(revision, query))
        count = int(row[COUNT])
        return FoldedState(count, self._state(revision, row, types) if count else None)

    def explained_events(
        self, revision: int, starts: Offsets, limit: int, masked: Iterable[str]
    ) -> list[ExplainedEvent]:
        """See KeyLog."""
        self._read_shown(starts, limit)
        rules = fold_sql(self.model, revision, WINDOW)
        columns = [f'"{name}"' for name in (PARTITION, OFFSET, TIMESTAMP, EVENT_TIME, EVENT_TYPE)]
        columns += [f'"{type_column(schema.name)}"' for schema in self.model.event_schemas]
        ended = f'bool_or(coalesce({rules.ended or "false"}, false)) OVER "{WINDOW}"'
        query = f"""SELECT * FROM (
            SELECT {", ".join(columns)}, {_packed(rules)} AS {STATE}, {ended} AS {HAS_ENDED},
                   rank() OVER "{WINDOW}" AS first, rank() OVER (ORDER BY "{OFFSET}" DESC) AS newest
            FROM {EVENTS} WHERE {_counted_from(starts)} WINDOW "{WINDOW}" AS (ORDER BY "{OFFSET}"))
            WHERE first <= {limit} OR newest <= {limit}"""
        hidden = frozenset(masked)
        return [
            ExplainedEvent(
                row[STATE][EVENT_COUNT.name],
                row[PARTITION],
                row[OFFSET],
                time_text(row[TIMESTAMP]),
                time_text(row[EVENT_TIME]),
                row[EVENT_TYPE],
                _event(row, types, hidden),
                self._state(revision, row, types),
            )
            for row, types in self._rows(
                f'{self._checked(revision, query)} ORDER BY "{OFFSET}", "{PARTITION}"'
            )
        ]

    def _read_shown(self, starts: Offsets, limit: int) -> None:
        """Replace the rows of a table that are to be shown by the events of the log."""
        rows = self._connection.execute(
            f"""SELECT "{PARTITION}", list_sort(list("{OFFSET}")) FROM (
                SELECT "{PARTITION}", "{OFFSET}", "{TIMESTAMP}", rank() OVER (ORDER BY "{OFFSET}") AS first,
                       rank() OVER (ORDER BY "{OFFSET}" DESC) AS newest FROM {EVENTS} WHERE {_counted_from(starts)})
            WHERE "{TIMESTAMP}" IS NULL AND (first <= {limit} OR newest <= {limit}) GROUP BY ALL"""
        ).fetchall()
        for batch in self._read_at(dict(rows)):
            self._connection.register("shown", batch.select([PARTITION, OFFSET]))
            self._connection.execute(
                f'DELETE FROM {EVENTS} WHERE ("{PARTITION}", "{OFFSET}") IN (FROM shown)'
            )
            self._connection.unregister("shown")
            self._events.append(self._connection, [batch])

    def close(self) -> None:
        """See KeyLog."""
        self._connection.close()

    def _checked(self, revision: int, query: str) -> str:
        """Return a query with the column UNWRITTEN, whether the state cannot be written."""
        condition = unwritten(self.model.state_schema_of(revision), STATE)
        return f"SELECT *, coalesce({condition}, false) AS {UNWRITTEN} FROM ({query})"

    def _rows(self, query: str) -> list[tuple[dict[str, Any], Mapping[str, pa.DataType]]]:
        """Return each row of a query, and the types of its columns."""
        found = self._connection.execute(query).fetch_arrow_table()
        types = {field.name: field.type for field in found.schema}
        return [(row, types) for row in found.to_pylist()]

    def _state(self, revision: int, row: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> str | None:
        """Return the state as JSON; None if the item has ended, or the state cannot be written."""
        record, kind = row[STATE], types[STATE]
        if row[HAS_ENDED] or row[UNWRITTEN]:
            return None
        names = [field.name for field in self.model.state_fields(revision)]
        return json_object((name, record[name], kind.field(name).type) for name in names)


def _is_text(one: AvroType) -> bool:
    return all(branch.kind in STRING_KINDS for branch in one.branches or (one,) if branch.kind != "null")


def _packed(rules: FoldSql) -> str:
    fields = ", ".join(f'"{name}" := {aggregate}' for name, aggregate in rules.record.items())
    return f"struct_pack({fields})"


def _counted_from(starts: Offsets) -> str:
    """Return the condition that an event is one from these offsets on."""
    skipped = (
        f'"{PARTITION}" = {partition} AND "{OFFSET}" < {offset}' for partition, offset in starts.items()
    )
    return " AND ".join(f"NOT ({one})" for one in skipped) or "true"


def _event(row: Mapping[str, Any], types: Mapping[str, pa.DataType], masked: frozenset[str]) -> str:
    """Return the fields of an event as JSON, without those that are masked."""
    name = row[EVENT_TYPE]
    column = type_column(name)
    return json_object(
        (field.name, row[column][field.name], field.type)
        for field in types[column]
        if field.name != EVENT_TIME and f"{name}.{field.name}" not in masked
    )
