"""The rules of a read model as SQL of DuckDB: over the events of a log, as include/replay/event_relation.py has them.

A rule that DuckDB may compute in another way than Spark is not translated: Spark then replays the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import exp

from include.declarations.event_types.event_columns import NAMED
from include.declarations.read_model import ReadModel
from include.declarations.rules.duckdb_sql import duckdb_sql
from include.declarations.rules.expression import parsed, used_columns
from include.errors import FoldlakeError, ReadModelError
from include.kafka.avro.avro_types import AvroType, avro_type
from include.kafka.logical_types import LogicalType
from include.kafka.record_schema import RecordSchema
from include.position import POSITION_RECORD_FIELDS, PositionField
from include.replay.columns import event_struct

FLOATING = frozenset({"FLOAT", "DOUBLE"})


class NotTranslatedError(FoldlakeError):
    """The rules of a read model cannot be replayed by DuckDB; the message says why."""


@dataclass(frozen=True)
class FoldSql:
    """The key and one fold revision of a read model in SQL.

    key: the read model's key of an event, as text. fields: field of the state -> its aggregate, of the type that its record has.
    position: the same of the position. types: field of either -> its type. ended: the condition under which an event ends its item; None: keys stay.
    columns, key_columns: those that they, and that the key uses: the parts of each name, as written.
    """

    key: str
    fields: Mapping[str, str]
    position: Mapping[str, str]
    types: Mapping[str, str]
    ended: str | None
    columns: frozenset[tuple[str, ...]]
    key_columns: frozenset[tuple[str, ...]]

    @property
    def record(self) -> dict[str, str]:
        """The aggregates of all fields of a state record."""
        return {**self.fields, **self.position}


def fold_sql(model: ReadModel, revision: int, window: str = "") -> FoldSql:
    """Return the rules in SQL.

    Args:
        model: the read model.
        revision: of the fold.
        window: the name of the window over which the state is computed; empty: the state is that of a group of events.

    Raises NotTranslatedError.
    """
    fold = model.folds.get(revision)
    if fold is None:
        raise NotTranslatedError(f"{model.name} has no fold revision {revision}")
    rules = {"its key": model.key, "its fold": fold, "its `ended`": model.ended or "false"}
    for name, rule in rules.items():
        if not isinstance(rule, str | Mapping):
            raise NotTranslatedError(f"{name} is a function")
    assert isinstance(fold, Mapping)  # noqa: S101 - as checked
    types = duckdb_types(model.state_schema_of(revision))
    _require_exact_sums(fold, types)
    try:
        fields = {
            field.name: f"CAST({duckdb_sql(fold[field.name], window)} AS {types[field.name]})"
            for field in model.state_fields(revision)
        }
        key = f"CAST({duckdb_sql(str(model.key))} AS VARCHAR)"
        ended = None if model.ended is None else duckdb_sql(str(model.ended))
    except ReadModelError as error:
        raise NotTranslatedError(str(error).rstrip(".")) from error
    over = f' OVER "{window}"' if window else ""
    position = {
        field.name: f"CAST({_position(field)}{over} AS {types[field.name]})"
        for field in POSITION_RECORD_FIELDS
    }
    used = _used([*fold.values(), *([] if model.ended is None else [str(model.ended)])])
    return FoldSql(key, fields, position, types, ended, used, _used([str(model.key)]))


def merge_sql(model: ReadModel, revision: int) -> dict[str, str] | None:
    """Return the merge of several states of one key in SQL: field -> aggregate; None without one that DuckDB computes alike."""
    merge = model.merge(revision)
    if not isinstance(merge, Mapping):
        return None
    types = duckdb_types(model.state_schema_of(revision))
    try:
        fields = {
            field.name: f"CAST({duckdb_sql(merge[field.name])} AS {types[field.name]})"
            for field in model.state_fields(revision)
        }
    except ReadModelError:
        return None
    return fields | {
        field.name: f"CAST({'sum' if field.maximum_of is None else 'max'}({field.name}) AS {types[field.name]})"
        for field in POSITION_RECORD_FIELDS
    }


def duckdb_types(schema: RecordSchema) -> dict[str, str]:
    """Return field -> the name of its type in DuckDB."""
    with duckdb.connect() as connection:
        fields = event_struct(schema)
        connection.register("typed", pa.schema(list(fields)).empty_table())
        return dict(zip(schema.fields, map(str, connection.table("typed").types), strict=True))


def _position(field: PositionField) -> str:
    return (
        "count(*)" if field.maximum_of is None else f'max("{NAMED.get(field.maximum_of, field.maximum_of)}")'
    )


def _used(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(column.parts for text in texts for column in used_columns(text))


def _require_exact_sums(fold: Mapping[str, str], types: Mapping[str, str]) -> None:
    """Raise NotTranslatedError for a sum of binary fractions: it depends on the order of the events."""
    for name, text in fold.items():
        is_floating = any(kind in types.get(name, "") for kind in FLOATING)
        if is_floating and parsed(text).find(exp.Sum, exp.Avg) is not None:
            raise NotTranslatedError(
                f"{name} is a sum of floating-point numbers, which depends on their order"
            )


def unwritten(schema: RecordSchema, record: str) -> str:
    """Return the condition that a state cannot be written: Avro lacks a value of a struct's fields, which have the types that their schema has in DuckDB."""
    return _any(
        _unwritten(f'{record}."{field.name}"', field.type) for field in avro_type(schema.parsed()).fields
    )


def _unwritten(value: str, one: AvroType, depth: int = 0) -> str:
    """Return the condition that Avro lacks a value; empty if it has each one."""
    branches = one.branches or (one,)
    kinds = [branch for branch in branches if branch.kind != "null"]
    if len(kinds) == len(branches):
        return _any([f"{value} IS NULL", *(_part(value, kind, depth) for kind in kinds if len(kinds) == 1)])
    return _part(value, kinds[0], depth) if len(kinds) == 1 else ""


def _part(value: str, kind: AvroType, depth: int) -> str:
    """Return the same for a value of a type that is not null; false or null for null."""
    if kind.kind == "enum":
        symbols = ", ".join(f"'{symbol}'" for symbol in kind.symbols)
        return f"{value} NOT IN ({symbols})"
    if kind.kind == "fixed":
        logical = LogicalType.of(kind.definition)
        is_decimal = logical is not None and logical.name == "decimal"
        return "" if is_decimal else f"octet_length({value}) <> {kind.size}"
    if kind.items is not None:
        item = f"item_{depth}"
        inside = _unwritten(item, kind.items, depth + 1)
        values = value if kind.kind == "array" else f"map_values({value})"
        return f"len(list_filter({values}, lambda {item}: {inside})) > 0" if inside else ""
    inside = _any(_unwritten(f'{value}."{field.name}"', field.type, depth) for field in kind.fields)
    return f"{value} IS NOT NULL AND ({inside})" if inside else ""


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({one})" for one in conditions if one)
