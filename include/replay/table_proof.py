"""Proves an event table: each event of its topic, decoded by the second decoder, must be a row with the same values.

Rows that were proved before are compared by a digest; those after them one by one with the log, which is read from there on.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from include.declarations.event_table import AppendedTable
from include.declarations.event_types.event_columns import OFFSET, PARTITION, type_column
from include.kafka.topic_state import TopicState, topic_state, unread_ends_of
from include.position import Offsets
from include.quality.verified_tag import TableDigest
from include.replay.batch_decoding import batch_schema
from include.replay.database import EVENT_DATABASE, check_database, digest_of
from include.replay.log_events import topic_batches
from include.replay.table_events import TableEvents, TableProof, between
from include.settings import Settings
from include.words import plural

LOG = logging.getLogger("foldlake.quality")
# Of the events that differ, so many are named; all are counted.
NAMED = 5


@dataclass(frozen=True)
class LogComparison:
    """What the log and an event table do not have in common.

    compared: events of the log, up to where the table contains it, that were decoded and compared. proved: rows that an earlier
    comparison has proved, and that have not changed since.
    missing: events that are no rows. surplus: rows that are no events of the log, or whose event is another row, too. changed: rows with another
    value than their event. behind: records of the topic after what the table contains. other_topic: whether the topic was created again since.
    named: the first events that differ, and how, as text.
    """

    compared: int = 0
    proved: int = 0
    missing: int = 0
    surplus: int = 0
    changed: int = 0
    behind: int = 0
    other_topic: bool = False
    named: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the table contains the log up to its offsets, and nothing else."""
        return not (self.missing or self.surplus or self.changed or self.other_topic)

    def __str__(self) -> str:
        """Return the result in one line."""
        if self.other_topic:
            return "the topic was deleted and created again since its events were appended"
        found = (
            (self.missing, f"{plural(self.missing, 'event')} of the log without a row"),
            (self.surplus, f"{plural(self.surplus, 'row')} too many"),
            (self.changed, f"{plural(self.changed, 'row')} with other values than the log"),
        )
        faults = "; ".join(text for count, text in found if count)
        named = f" ({'; '.join(self.named)})" if self.named else ""
        proved = f"{plural(self.proved, 'row')} as proved before, " if self.proved else ""
        return f"{faults or 'as in the log'}{named}, {proved}{plural(self.compared, 'event')} compared, {plural(self.behind, 'record')} not appended yet"


def compare_with_log(settings: Settings, declared: AppendedTable, *, from_log: bool = False) -> LogComparison:
    """Compare an event table with its topic, and keep how far it is proved.

    Rows of records that the topic's retention has deleted are not compared, unless they were proved before.

    Args:
        settings: where the table, the topic and the proof are.
        declared: the event table.
        from_log: compare all rows with the log, also those that were proved before.

    Raises:
        EventTableMissingError: nothing has been appended to the table yet.
        KafkaUnavailableError: the brokers do not respond in time.
        RegistryUnavailableError: the schema registry does not.
    """
    table = TableEvents.open(settings.lake_root, declared)
    kafka = settings.kafka_connection
    topic = topic_state(kafka, declared.source_topic)
    if topic is None or topic.topic_id != table.tag.topic_id:
        return LogComparison(other_topic=True)
    proof = None if from_log else table.proof(settings.lake_root)
    if proof is not None and not proof.offsets.covers(topic.starts):
        # The topic has lost records that were not compared.
        proof = None
    with check_database(settings) as connection:
        table.register(connection)
        if proof is not None and not is_as_proved(connection, table, proof):
            LOG.warning(
                "%s was changed by another program since it was proved: all rows are compared", table.name
            )
            proof = None
        found = _Comparison(settings, table, topic, proof, connection).run()
    unread = unread_ends_of(kafka, declared.source_topic, topic.ends, table.tag.offsets)
    return LogComparison(**found, behind=table.tag.offsets.events_until(unread))


def is_as_proved(connection: duckdb.DuckDBPyConnection, table: TableEvents, proof: TableProof) -> bool:
    """Return whether the rows that were proved are the ones that the table has. The table is registered in the database."""
    rows = f"({table.query()}) WHERE {between(proof.start, proof.offsets)}"
    return digest_of(connection, rows, table.row_hash()) == proof.digest


class _Comparison:
    def __init__(
        self,
        settings: Settings,
        table: TableEvents,
        topic: TopicState,
        proof: TableProof | None,
        connection: duckdb.DuckDBPyConnection,
    ) -> None:
        self._settings = settings
        self._table = table
        self._connection = connection
        self._proof = proof
        # What the table has, and the log still has.
        self._start = table.tag.start.merge(topic.starts) if proof is None else proof.start
        self._since = self._start if proof is None else proof.offsets
        # Of all partitions of the topic: their number is part of what makes a record valid.
        self._until = Offsets({partition: table.tag.offsets.of(partition) for partition in topic.ends})

    def run(self) -> dict[str, Any]:
        """Return the fields of the result, without `behind`; keep the proof if the table is exact."""
        table, connection, before = self._table, self._connection, self._proof
        self._read_log()
        # Rows below are proved, or have no record any more. A row above the offsets of the tag is none of the log's.
        is_below = between(Offsets(dict.fromkeys(self._since, 0)), self._since)
        connection.execute(
            f"""CREATE TABLE differing AS
            SELECT partition, position, of_log.hash AS event_hash, of_table.hash AS row_hash, coalesce(copies, 0) AS copies
            FROM log_hashes AS of_log FULL JOIN (
                SELECT "{PARTITION}" AS partition, "{OFFSET}" AS position, any_value({table.row_hash()}) AS hash, count(*) AS copies
                FROM ({table.query()}) WHERE NOT {is_below} GROUP BY ALL) AS of_table USING (partition, position)
            WHERE of_log.hash IS DISTINCT FROM of_table.hash OR copies > 1"""
        )
        counted = connection.execute(
            """SELECT count(*) FILTER (row_hash IS NULL),
                      coalesce(sum(copies - CAST(event_hash IS NOT NULL AS INTEGER)) FILTER (row_hash IS NOT NULL), 0),
                      count(*) FILTER (event_hash <> row_hash) FROM differing"""
        ).fetchone()
        assert counted is not None  # noqa: S101 - an aggregate without groups has one row
        missing, surplus, changed = map(int, counted)
        read = digest_of(connection, "log_hashes", "hash")
        proved = TableDigest() if before is None else before.digest
        if not (missing or surplus or changed):
            table.new_proof(self._start, proved + read).write(self._settings.lake_root, table.declared.name)
        return {
            "compared": read.rows,
            "proved": proved.rows,
            "missing": missing,
            "surplus": surplus,
            "changed": changed,
            "named": tuple(self._named()),
        }

    def _read_log(self) -> None:
        """Create `log_hashes`: partition, position (the offset) and hash of the events that are compared."""
        table, connection = self._table, self._connection
        events = table.declared.events
        hashed = (
            f'SELECT "{PARTITION}" AS partition, "{OFFSET}" AS position, {table.row_hash()} AS hash '
            f"FROM ({table.query_of_log('batch')})"
        )
        connection.register("batch", batch_schema(events.readers).empty_table())
        connection.execute(f"CREATE TABLE {EVENT_DATABASE}.log_hashes AS {hashed}")
        # In one transaction: each one of a batch would write its rows twice.
        connection.begin()
        for batch in topic_batches(self._settings, events, self._since, self._until):
            connection.register("batch", batch)
            connection.execute(f"INSERT INTO log_hashes {hashed}")
        connection.commit()
        connection.unregister("batch")

    def _named(self) -> Iterator[str]:
        """Yield the first events that differ, with their keys."""
        rows = self._connection.execute(
            f"SELECT partition, position, event_hash IS NOT NULL, copies FROM differing ORDER BY partition, position LIMIT {NAMED}"
        ).fetchall()
        for partition, offset, is_event, copies in rows:
            place = f"partition {partition}, offset {offset}"
            stored = self._stored(partition, offset)
            logged = self._logged(partition, offset) if is_event else {}
            whose = f"{place}{self._key(logged or stored)}"
            if not is_event:
                yield f"{whose}: no such event"
            elif not copies:
                yield f"{whose}: no row"
            elif differing := [name for name in logged if logged[name] != stored.get(name)]:
                values = (
                    f"{name} {logged[name]} in the log, {stored.get(name)} in the table" for name in differing
                )
                yield f"{whose}: {', '.join(values)}"
            else:
                yield f"{whose}: {copies} rows"

    def _key(self, fields: dict[str, str]) -> str:
        for reader in self._table.declared.events.readers:
            if reader.key_field in fields:
                return f", key {fields[reader.key_field]}"
        return ""

    def _stored(self, partition: int, offset: int) -> dict[str, str]:
        return self._fields(
            f'({self._table.query()}) WHERE "{PARTITION}" = {partition} AND "{OFFSET}" = {offset}'
        )

    def _logged(self, partition: int, offset: int) -> dict[str, str]:
        """Return the fields of one event of the log; empty if it is gone since."""
        ends = Offsets(dict(self._until) | {partition: offset + 1})
        events = self._table.declared.events
        since = Offsets({partition: offset})
        for batch in topic_batches(self._settings, events, since, ends, partitions=(partition,)):
            self._connection.register("batch", batch)
            try:
                return self._fields(f"({self._table.query_of_log('batch')})")
            finally:
                self._connection.unregister("batch")
        return {}

    def _fields(self, rows: str) -> dict[str, str]:
        """Return the fields of one event as text: of the struct of its type, which is the one that is not null."""
        structs = ", ".join(f'"{type_column(reader.name)}"' for reader in self._table.declared.events.readers)
        found = self._connection.execute(f"SELECT {structs} FROM {rows} LIMIT 1").fetchone()
        event: dict[str, Any] = next((one for one in found or () if one is not None), {})
        return {name: str(value) for name, value in event.items()}
