"""The rows of an event table as events, with the columns that the log's have, and the proof of them against the log."""

import hashlib
import json
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import duckdb
from deltalake import DeltaTable

from include.declarations.event_table import OFFSET_COLUMN, PARTITION_COLUMN, AppendedTable
from include.declarations.event_types.event_columns import EVENT_TYPE, OFFSET, PARTITION, type_column
from include.declarations.read_model import ReadModel
from include.declarations.topic_tables import EVENT_TYPE as TYPE_COLUMN
from include.declarations.topic_tables import load_lake_catalog
from include.files import PRIVATE_FILE, write_atomically
from include.kafka.record_schema import RecordSchema
from include.lake.event_table_check import EventTableMissingError, opened
from include.lake.sql_tables import quoted
from include.lake.tables import proof_file
from include.lake.tags import AppendTag, Tag
from include.position import Offsets
from include.quality.verified_tag import TableDigest
from include.replay.database import ENGINE
from include.replay.event_relation import EventRelation
from include.replay.fold_sql import duckdb_types
from include.settings import Settings

# The table, as a relation of DuckDB.
ROWS = "event_table_rows"
EVERY = ("*",)


@dataclass(frozen=True)
class TableProof(Tag):
    """Up to where the rows of an event table are proved: each event of the log is a row with the same values, and no other row is there.

    topic_id: Kafka's id of the topic. generation: of the table, as in its AppendTag. columns: a fingerprint of what was compared.
    start, offsets: partition of the topic -> the first offset that was compared, and the one after the last.
    digest: of the rows between these. proved_at_s: when (Unix s).
    """

    topic_id: str
    generation: int
    columns: str
    start: Offsets
    offsets: Offsets
    digest: TableDigest
    proved_at_s: float

    @classmethod
    def read(cls, lake_root: str, table: str) -> Self | None:
        """Return the proof of an event table; None if there is none."""
        try:
            return cls.from_json(_path(lake_root, table).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def write(self, lake_root: str, table: str) -> None:
        """Replace the proof of an event table. A lake that is on no file system of this machine keeps none."""
        if "://" in lake_root.removeprefix("file://"):
            return
        path = _path(lake_root, table)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.to_json(), PRIVATE_FILE)


def _path(lake_root: str, table: str) -> Path:
    return Path(proof_file(lake_root.removeprefix("file://"), table))


@dataclass(frozen=True)
class TableEvents:
    """One version of an event table, and its newest tag."""

    declared: AppendedTable
    delta: DeltaTable
    tag: AppendTag

    @classmethod
    def open(cls, lake_root: str, declared: AppendedTable) -> "TableEvents":
        """Return the table as of its newest version; raises EventTableMissingError when nothing has been appended to it yet."""
        return cls(declared, *opened(lake_root, declared))

    @property
    def name(self) -> str:
        """The table's path from the folder that contains the lake."""
        return f"lake/{self.declared.name}"

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the table's rows known to a database, in which queries of `query` can be executed then."""
        files = [file.removeprefix("file://") for file in self.delta.file_uris()]
        dataset = self.delta.to_pyarrow_dataset()
        if not files or not all(Path(file).is_file() for file in files):
            # In storage that DuckDB does not know how to read, or without rows.
            connection.register(ROWS, dataset)
            return
        names = ", ".join(map(quoted, files))
        scan = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
        present = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE FROM {scan}").fetchall()}
        # Spark's files do not say that their times are in UTC.
        connection.register("typed", dataset.schema.empty_table())
        types = connection.execute("SELECT column_name, column_type FROM (DESCRIBE typed)").fetchall()
        connection.unregister("typed")
        columns = ", ".join(
            f'{_cast(name, present[name], kind) if name in present else f"CAST(NULL AS {kind})"} AS "{name}"'
            for name, kind in types
        )
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {ROWS} AS SELECT {columns} FROM {scan}")

    def query(self, fields: Collection[str] = EVERY) -> str:
        """Return the events in SQL: `record:partition`, `record:offset`, `record:event_type`, and the struct of each event type.

        fields: the names of those that the structs must have, in lower case; `*` stands for all.
        """
        columns = ", ".join(self._struct(reader, fields) for reader in self.declared.events.readers)
        return (
            f'SELECT {PARTITION_COLUMN} AS "{PARTITION}", {OFFSET_COLUMN} AS "{OFFSET}", '
            f'{self._event_type} AS "{EVENT_TYPE}", {columns} FROM {ROWS}'
        )

    def is_entity(self, key: str) -> str:
        """Return the condition that the entity of a row's event, which is the key of its record, is this one."""
        of_readers = ((reader, self._columns(reader)) for reader in self.declared.events.readers)
        entities = {
            columns[reader.key_field] for reader, columns in of_readers if reader.key_field in columns
        }
        conditions = (f'"{name}" = {quoted(key)}' for name in sorted(entities))
        return f"({' OR '.join(conditions) or 'true'})"

    def query_of(self, relation: EventRelation, condition: str) -> str:
        """Return the events that a read model folds, if their rows meet a condition on the columns of `query`, or on those of the table."""
        types = ", ".join(quoted(reader.name) for reader in relation.model.events.readers)
        return f"{self.query(relation.names)} WHERE ({condition}) AND {self._event_type} IN ({types})"

    def query_of_log(self, rows: str) -> str:
        """Return the same columns of some rows with those of the log's events, without the fields that the table has no column for."""
        columns = ", ".join(
            f'CASE WHEN "{type_column(reader.name)}" IS NOT NULL THEN struct_pack('
            + ", ".join(
                f'"{name}" := "{type_column(reader.name)}"."{name}"' for name in self._columns(reader)
            )
            + f') END AS "{type_column(reader.name)}"'
            for reader in self.declared.events.readers
        )
        return f'SELECT "{PARTITION}", "{OFFSET}", "{EVENT_TYPE}", {columns} FROM {rows}'

    def row_hash(self) -> str:
        """Return the hash of an event of either query in SQL: of its position, its type and all of its fields."""
        structs = (type_column(reader.name) for reader in self.declared.events.readers)
        return "hash(row({}))".format(
            ", ".join(f'"{name}"' for name in (PARTITION, OFFSET, EVENT_TYPE, *structs))
        )

    @cached_property
    def fingerprint(self) -> str:
        """A fingerprint of the columns: a proof is of the same ones."""
        readers = [[reader.name, reader.parsed()] for reader in self.declared.events.readers]
        columns = [[column.name, dict(column.fields)] for column in self.declared.columns]
        text = json.dumps([ENGINE, readers, columns], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def proof(self, lake_root: str) -> TableProof | None:
        """Return the proof of this table; None if there is none, or only one of other columns or another topic."""
        found = TableProof.read(lake_root, self.declared.name)
        if found is None or (found.topic_id, found.generation) != (self.tag.topic_id, self.tag.generation):
            return None
        return found if found.columns == self.fingerprint and self.tag.offsets.covers(found.offsets) else None

    def new_proof(self, start: Offsets, digest: TableDigest) -> TableProof:
        """Return the proof of all rows from these offsets on."""
        tag = self.tag
        return TableProof(
            tag.topic_id, tag.generation, self.fingerprint, start, tag.offsets, digest, time.time()
        )

    @property
    def _event_type(self) -> str:
        """The expression of an event's type."""
        if any(column.name == TYPE_COLUMN.name and not column.fields for column in self.declared.columns):
            return f'"{TYPE_COLUMN.name}"'
        (reader,) = self.declared.events.readers
        return quoted(reader.name)

    def _columns(self, reader: RecordSchema) -> dict[str, str]:
        """Return the fields of an event type that the table has, in the order of its schema: field -> column."""
        found = {
            column.fields[reader.name]: column.name
            for column in self.declared.columns
            if reader.name in column.fields
        }
        return {name: found[name] for name in reader.fields if name in found}

    def _struct(self, reader: RecordSchema, fields: Collection[str]) -> str:
        present = {one.name for one in self.delta.schema().fields}
        types = duckdb_types(reader)
        packed = ", ".join(
            # A column is added when the next events are appended.
            f'"{name}" := "{column}"' if column in present else f'"{name}" := CAST(NULL AS {types[name]})'
            for name, column in self._columns(reader).items()
            if "*" in fields or name.casefold() in fields
        )
        return f'CASE WHEN {self._event_type} = {quoted(reader.name)} THEN struct_pack({packed}) END AS "{type_column(reader.name)}"'


def _cast(column: str, kind: str, wanted: str) -> str:
    """Return a column of a file with the type of the table; a time without a zone is in UTC."""
    cast = f'CAST("{column}" AS {wanted})'
    if (kind, wanted) != ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        return cast
    # The cast asks a calendar for the zone's offset at each time: it takes twenty times as long.
    return f'CASE WHEN isfinite("{column}") THEN make_timestamptz(epoch_us("{column}")) ELSE {cast} END'


def between(start: Offsets, end: Offsets) -> str:
    """Return the condition that an event is at or above the first offsets, and below the second ones."""
    bounds = (
        f'("{PARTITION}" = {partition} AND "{OFFSET}" >= {start.of(partition)} AND "{OFFSET}" < {stop})'
        for partition, stop in sorted(end.items())
    )
    return f"({' OR '.join(bounds) or 'false'})"


def proved_table(settings: Settings, model: ReadModel) -> tuple[TableEvents, TableProof] | None:
    """Return the event table with all event types of a read model, and its proof; None if there is none, or no proof."""
    topic, readers = model.events.topic, {reader.name for reader in model.events.readers}

    def has_all(table: AppendedTable) -> bool:
        return table.source_topic == topic and readers <= {reader.name for reader in table.events.readers}

    declared = next(filter(has_all, load_lake_catalog(settings).event_tables.values()), None)
    if declared is None or TableProof.read(settings.lake_root, declared.name) is None:
        return None
    try:
        table = TableEvents.open(settings.lake_root, declared)
    except EventTableMissingError:
        return None
    proof = table.proof(settings.lake_root)
    return None if proof is None else (table, proof)
