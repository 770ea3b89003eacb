"""The records of a version, decoded: from the form in which changelog and nodes store them, and from the nodes' answers in JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from include.declarations.read_model import KEY_COLUMN, ReadModel
from include.kafka.avro.avro_types import avro_type
from include.kafka.avro.schema_resolution import with_reader_names
from include.kafka.schema_registry import JOB_PATIENCE_S, SchemaRegistry
from include.kafka.wire_format import HEADER_BYTES, MAGIC
from include.nodes.field_names import FieldNames, renamed
from include.position import POSITION_COLUMNS
from include.quality.check import QualityError
from include.replay.avro.avro_columns import Column, NoColumnError, column_of
from include.replay.avro.avro_cursor import Cursor
from include.replay.avro.avro_reading import Read, reading
from include.replay.check.readings import PLACE
from include.replay.columns import event_struct
from include.replay.json_values import typed_value
from include.settings import Settings


@dataclass(frozen=True)
class _Reading:
    """How the records of a schema id are read: one by one, and, unless it is None, at once."""

    single: Read
    column: Column | None


class StateRecords:
    """Reads the state records of one version. fields: those of a record. schema: PLACE, key, and these fields."""

    def __init__(self, settings: Settings, model: ReadModel, revision: int) -> None:
        self._reader = model.state_schema_of(revision)
        self._registry = SchemaRegistry(settings.registry.connection, patience_s=JOB_PATIENCE_S)
        self._readings: dict[int, _Reading] = {}
        self.fields = event_struct(self._reader)
        self.schema = pa.schema([(PLACE, pa.string()), (KEY_COLUMN, pa.string()), *self.fields])

    def decoded(self, values: Sequence[bytes | None]) -> pa.StructArray:
        """Return records in Confluent's wire format; null for null.

        Raises QualityError for a value that is no state record of the version, RegistryUnavailableError.
        """
        by_id: dict[int, list[int]] = {}
        for row, value in enumerate(values):
            if value is not None:
                by_id.setdefault(_schema_id(value), []).append(row)
        parts, places = [pa.nulls(1, self.fields)], np.zeros(len(values), np.int64)
        for schema_id, rows in by_id.items():
            places[rows] = np.arange(len(rows)) + sum(map(len, parts))
            parts.append(self._read(schema_id, [values[row] or b"" for row in rows]))
        return pa.concat_arrays(parts).take(pa.array(places))

    def rows(self, place: str, keys: Sequence[str], values: Sequence[bytes]) -> pa.RecordBatch:
        """Return records as rows of a replica; errors as those of `decoded`."""
        found = self.decoded(values)
        columns = [pa.array([place] * len(keys), pa.string()), pa.array(keys, pa.string()), *found.flatten()]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def answered(self, place: str, texts: Sequence[str]) -> pa.RecordBatch:
        """Return records as rows of a replica, as a node answers with them in JSON."""
        rows = []
        for text in texts:
            record = renamed(json.loads(text, parse_float=Decimal), FieldNames.SNAKE)
            fields = {**record["state"], **{name: record[name] for name in POSITION_COLUMNS}}
            values = {field.name: typed_value(fields.get(field.name), field.type) for field in self.fields}
            rows.append({PLACE: place, KEY_COLUMN: record["key"], **values})
        return pa.RecordBatch.from_pylist(rows, schema=self.schema)

    def _read(self, schema_id: int, values: Sequence[bytes]) -> pa.StructArray:
        found = self._reading(schema_id)
        if found.column is None:
            return pa.array([self._single(found.single, value) for value in values], self.fields)
        cursor = Cursor.of(values)
        cursor.skip(HEADER_BYTES)
        records = found.column(cursor)
        if cursor.ok.all():
            return records
        others = np.flatnonzero(~cursor.ok)
        places = np.arange(len(values))
        places[others] = len(values) + np.arange(len(others))
        read = pa.array([self._single(found.single, values[row]) for row in others.tolist()], self.fields)
        return pa.concat_arrays([records, read]).take(pa.array(places))

    def _single(self, read: Read, value: bytes) -> dict[str, Any]:
        try:
            fields: dict[str, Any] = read(value, HEADER_BYTES)[0]
        except Exception as error:
            raise QualityError(
                f"A record is not a state record of its version: {value[:40].hex()}…"
            ) from error
        return fields

    def _reading(self, schema_id: int) -> _Reading:
        if schema_id not in self._readings:
            writer = self._registry.schema_by_id(schema_id)
            if writer is None or writer.full_name != self._reader.full_name:
                raise QualityError(
                    f"A record has the schema id {schema_id}, which is not that of {self._reader.full_name}."
                )
            wanted = avro_type(self._reader.parsed())
            written = with_reader_names(avro_type(writer.parsed()), wanted)
            try:
                column = column_of(written, wanted)
            except NoColumnError:
                column = None
            self._readings[schema_id] = _Reading(reading(written, wanted), column)
        return self._readings[schema_id]


def _schema_id(value: bytes) -> int:
    if len(value) < HEADER_BYTES or value[0] != MAGIC:
        raise QualityError(f"A record is not in the wire format of the schema registry: {value[:40].hex()}…")
    return int.from_bytes(value[1:HEADER_BYTES], "big")
