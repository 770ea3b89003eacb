"""For tests of declarations: the result for some events in milliseconds, computed by DuckDB from rules in SQL, without Spark and Kafka.

A rule that DuckDB may compute in another way than Spark, or a function, raises FoldlakeError: test it with `stack.declaration_testing`, which runs
the plans of the stream driver, and takes seconds to start. Dead letters are left to those tests, too.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import duckdb
import pyarrow as pa

from include.declarations.event_types.event_columns import shared_fields, short_names, type_column
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.declarations.rules.duckdb_sql import duckdb_sql
from include.declarations.rules.expression import Expression, Fields
from include.errors import FoldlakeError
from include.kafka.avro.avro_types import AvroType, avro_type, without_null
from include.kafka.record_schema import RecordSchema
from include.replay.columns import arrow_type

Event = Mapping[str, Any]
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
# Columns beside those of events, and the window of the events of a key up to each.
KEY, NUMBER, AFTER = '"test:key"', '"test:number"', "after"
WINDOW = f"WINDOW {AFTER} AS (PARTITION BY {KEY} ORDER BY {NUMBER})"


def folded(
    model: ReadModel, events: Sequence[Event], revision: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return the state of each key after these events, without the position's fields. Keys that have ended are left out.

    Args:
        model: the read model, as declared or as loaded.
        events: in the order of the topic: the fields of each, and `event_type` if several types are read. `id` and `occurredOn` may be left out.
        revision: of the fold; None: the newest.

    Raises:
        FoldlakeError: an event is none of the read model's types, or a rule is not the same in DuckDB.
    """
    revision = revision or model.newest_fold_revision
    state = _state(model, revision)
    columns = ", ".join(f"{value} AS {name}" for name, value in state.items())
    ended = "false" if model.ended is None else f"coalesce(bool_or({_sql(model.ended)}), false)"
    query = f"SELECT {KEY}, {columns} FROM ({_keyed(model)}) GROUP BY {KEY} HAVING NOT {ended} ORDER BY 1"
    return {
        key: dict(
            zip((field.name for field in model.state_fields(revision)), map(_value, values), strict=True)
        )
        for key, *values in _rows(query, model.event_schemas, events)
    }


def routed(route: Flow, events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the records that a route or another flow writes, in order; personal values are those of the event. Arguments and errors are those of `folded`.

    A flow that writes events as they are returns these. One with `each` or a state needs Spark.
    """
    if route.each is not None or route.state is not None:
        raise FoldlakeError(
            f"{route.title} has `each` or a state: test it with Spark (docs/how-to/test-a-rule.md)."
        )
    if route.fields is None:
        query = f"SELECT {NUMBER} FROM events {_where(route.where)} ORDER BY 1"
        return [dict(events[number]) for (number,) in _rows(query, route.event_schemas, events)]
    query = f"SELECT {_outputs(route.fields, route.output_schema)} FROM events {_where(route.where)} ORDER BY {NUMBER}"
    return _records(route.output_schema, _rows(query, route.event_schemas, events))


def emitted(
    emission: Emission, model: ReadModel, events: Sequence[Event], revision: int | None = None
) -> list[dict[str, Any]]:
    """Return the records that an emission writes, in the order of the events. Arguments and errors are those of `folded`."""
    revision = revision or model.newest_fold_revision
    state = _state(model, revision, AFTER)
    state |= {"event_count": f"count(*) OVER {AFTER}", "source_partition": "0", "source_offset": NUMBER}
    packed = ", ".join(f"{name}: {value}" for name, value in state.items())
    with_state = f"SELECT *, {{{packed}}} AS state FROM ({_keyed(model)}) {WINDOW}"
    fields = _outputs(emission.fields_of(revision), emission.output_schema)
    query = f"SELECT {fields} FROM ({with_state}) {_where(emission.where)} ORDER BY {NUMBER}"
    return _records(emission.output_schema, _rows(query, model.event_schemas, events))


def _keyed(model: ReadModel) -> str:
    return f"SELECT *, CAST({_sql(model.key)} AS VARCHAR) AS {KEY} FROM events"


def _state(model: ReadModel, revision: int, window: str = "") -> dict[str, str]:
    """Return the SQL of each field of the state, by its quoted name; of the state after each event, with a window."""
    fold = model.folds[revision]
    if not isinstance(fold, Mapping):
        raise FoldlakeError(
            f"Fold {revision} of {model.name} is a function: test it with Spark (docs/how-to/test-a-rule.md)."
        )
    types = {field.name: _duckdb_type(avro_type(field.avro_type)) for field in model.state_fields(revision)}
    return {f'"{name}"': f"CAST({duckdb_sql(fold[name], window)} AS {kind})" for name, kind in types.items()}


def _outputs(fields: Fields, schema: RecordSchema) -> str:
    """Return the SQL of the fields of an output, in the schema's order."""
    found = fields if isinstance(fields, Mapping) else fields()
    types = {field.name: _duckdb_type(field.type) for field in avro_type(schema.parsed()).fields}
    return ", ".join(f"CAST({_sql(found[name])} AS {kind})" for name, kind in types.items())


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f"WHERE {_sql(condition)}"


def _sql(expression: object) -> str:
    if not isinstance(expression, str):
        raise FoldlakeError("A rule that is a function needs Spark (docs/how-to/test-a-rule.md).")
    return duckdb_sql(expression)


def _records(schema: RecordSchema, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(schema.fields, map(_value, row), strict=True)) for row in rows]


def _rows(query: str, schemas: tuple[RecordSchema, ...], events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Return the rows of a query over the table `events`."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", _table(schemas, events))
        try:
            return connection.execute(query).fetchall()
        except duckdb.InvalidInputException as error:
            # A rule has a part that may have another result for a value of this type.
            raise FoldlakeError(
                f"{error}: test the declaration with Spark (docs/how-to/test-a-rule.md)."
            ) from error


def _table(schemas: tuple[RecordSchema, ...], events: Sequence[Event]) -> pa.Table:
    """Return events with the columns that expressions use (event_columns.py)."""
    by_name = {schema.name: schema for schema in schemas}
    types = {name: _arrow_type(avro_type(schema.parsed())) for name, schema in by_name.items()}
    shorts = {internal: short for short, internal in short_names(schemas).items()}
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for number, event in enumerate(events):
        event_type = event.get("event_type", schemas[0].name if len(schemas) == 1 else None)
        if event_type not in by_name:
            raise FoldlakeError(
                f"event_type of event {number} is {event_type!r}; allowed: {', '.join(by_name)}."
            )
        fields = {"id": f"event-{number}", "occurredOn": FIRST + timedelta(seconds=number), **event}
        unknown = sorted(fields.keys() - {"event_type", "id"} - set(by_name[event_type].fields))
        if unknown:
            raise FoldlakeError(
                f"{event_type} has no field {unknown[0]}; its fields: {', '.join(by_name[event_type].fields)}."
            )
        rows.append((event_type, fields))
    columns: dict[str, pa.Array] = {NUMBER.strip('"'): pa.array(range(len(rows)), pa.int64())}
    for name, kind in types.items():
        structs = [_stored(fields, kind) if event_type == name else None for event_type, fields in rows]
        columns[shorts.get(type_column(name), type_column(name))] = pa.array(structs, kind)
    for name in shared_fields(schemas):
        kind = types[schemas[0].name].field(name).type
        columns[name] = pa.array([_stored(fields.get(name), kind) for _, fields in rows], kind)
    record = {
        "event_type": pa.array([event_type for event_type, _ in rows], pa.string()),
        "partition": pa.array([0] * len(rows), pa.int32()),
        "offset": pa.array(range(len(rows)), pa.int64()),
    }
    return pa.table(columns | {name: column for name, column in record.items() if name not in columns})


def _arrow_type(one: AvroType) -> pa.DataType:
    """Return a type with times in UTC without a zone; raises FoldlakeError for one that only Spark tests have."""
    if _has_several_types(one):
        raise FoldlakeError(f"The Avro type {one.definition} needs Spark (docs/how-to/test-a-rule.md).")
    return arrow_type(one, zone=None)


def _has_several_types(one: AvroType) -> bool:
    kept = without_null(one)
    return kept.kind == "union" or any(_has_several_types(part) for _, part in kept.parts)


def _duckdb_type(one: AvroType) -> str:
    """Return the name of a type in DuckDB."""
    with duckdb.connect() as connection:
        connection.register("typed", pa.table({"one": pa.array([], _arrow_type(one))}))
        return str(connection.table("typed").types[0])


def _stored(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - a value of an event
    """Return a value as Arrow has it: times in UTC without a zone, decimals with their scale, structs with all of their fields."""
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, Decimal):
        return value.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
    if isinstance(value, Mapping) and pa.types.is_struct(kind):
        return {field.name: _stored(value.get(field.name), field.type) for field in kind}
    if isinstance(value, Sequence) and pa.types.is_list(kind):
        return [_stored(one, kind.value_type) for one in value]
    return value


def _value(value: Any) -> Any:  # noqa: ANN401 - a value of a row
    """Return a value as a record has it: times in UTC."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
