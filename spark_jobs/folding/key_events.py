"""The events of one key, and the state after each of them, by the fold that the streams run."""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import broadcast, col, lit, struct, to_json, when
from pyspark.sql.types import StructType

from include.declarations.event_types.event_columns import EVENT_TYPE, OFFSET, PARTITION, type_column
from include.declarations.read_model import ReadModel
from include.position import EVENT_COUNT, Offsets
from include.versions.explanation import ExplainedEvent
from include.versions.key_explanation import FoldedState
from spark_jobs.folding.expressions.avro_columns import typed_columns
from spark_jobs.folding.expressions.columns import column_of
from spark_jobs.folding.expressions.failed_expressions import attempt, is_event
from spark_jobs.folding.fold_query import foldable, folded
from spark_jobs.folding.lifetimes import HAS_ENDED
from spark_jobs.folding.replay import WRITTEN_AT
from spark_jobs.folding.written_states import has_failed

# Null fields are shown, too.
JSON_OPTIONS = {"ignoreNullFields": "false"}
POINT = "record:explained_offset"


def of_key(model: ReadModel, events: DataFrame, key: str) -> DataFrame:
    """Return the events with this key of the read model."""
    # The key of an event for which the fold fails may raise an error.
    return events.where(attempt(when(is_event(), column_of(model.key).cast("string"))) == lit(key))


def counted_from(events: DataFrame, starts: Offsets) -> DataFrame:
    """Return the events from these offsets on."""
    skipped = lit(False)  # noqa: FBT003 - a column
    for partition, offset in starts.items():
        skipped |= (col(PARTITION) == partition) & (col(OFFSET) < offset)
    return events.where(~skipped)


def folded_state(model: ReadModel, revision: int, events: DataFrame) -> FoldedState:
    """Return the state of a key, given its events.

    Raises ReadModelError when the module lacks this fold revision.
    """
    states = folded(model, revision, foldable(model, revision, events).groupBy())
    row = states.select(*_state(model, revision, states)).first()
    assert row is not None  # noqa: S101 - an aggregate without groups has one row
    return FoldedState(row[EVENT_COUNT.name], row["state"] if row[EVENT_COUNT.name] else None)


def explained_events(
    model: ReadModel, revision: int, events: DataFrame, limit: int, masked: Iterable[str]
) -> list[ExplainedEvent]:
    """Return the first and the newest `limit` of a key's events, in order, each with the state after it.

    The state after an event is the fold of all events up to it: the work grows with `limit` times the number of the key's events.

    Args:
        model: the read model.
        revision: of the fold. Raises ReadModelError when the module lacks it.
        events: those of one key, from one partition, with WRITTEN_AT.
        limit: how many first, and how many newest events.
        masked: the fields of events to leave out, `<EventType>.<field>`.
    """
    offset, events = col(OFFSET), foldable(model, revision, events)
    ends = [
        [row[OFFSET] for row in events.select(OFFSET).orderBy(order).limit(limit).collect()]
        for order in (offset.asc(), offset.desc())
    ]
    points = sorted({*ends[0], *ends[1]})
    if not points:
        return []
    chosen = events.sparkSession.createDataFrame([(point,) for point in points], f"`{POINT}` bigint")
    up_to = events.join(broadcast(chosen), offset <= col(POINT)).groupBy(POINT)
    after = folded(model, revision, up_to)
    states = after.select(POINT, *_state(model, revision, after))
    shown = events.select(
        col(PARTITION).alias("partition"),
        offset.alias("offset"),
        _iso(WRITTEN_AT).alias("written_at"),
        _iso("occurredOn").alias("occurred_on"),
        col(EVENT_TYPE).alias("event_type"),
        _event(model, events, frozenset(masked)).alias("event"),
    )
    rows = shown.join(broadcast(states), col("offset") == col(POINT)).orderBy("offset").collect()
    return [
        ExplainedEvent(
            row[EVENT_COUNT.name],
            row.partition,
            row.offset,
            row.written_at,
            row.occurred_on,
            row.event_type,
            row.event,
            row.state,
        )
        for row in rows
    ]


def _state(model: ReadModel, revision: int, states: DataFrame) -> Sequence[Column]:
    """Return the number of events, and the state as JSON, of an aggregate."""
    names = [field.name for field in model.state_fields(revision)]
    columns = {name: col(name) for name in names}
    fields = typed_columns(
        f"Fold {revision} of {model.name}", model.state_schema_of(revision), columns, states
    )
    state = when(~col(HAS_ENDED) & ~has_failed(states), to_json(struct(*fields.values()), JSON_OPTIONS))
    return [col(EVENT_COUNT.name), state.alias("state")]


def _event(model: ReadModel, events: DataFrame, masked: frozenset[str]) -> Column:
    """Return the fields of an event as JSON, without those that are masked."""
    text = lit(None).cast("string")
    for schema in model.event_schemas:
        # The column of a type of which the registry has no schema is of no type.
        if not isinstance(events.schema[type_column(schema.name)].dataType, StructType):
            continue
        fields = [
            col(f"{type_column(schema.name)}.{name}").alias(name)
            for name in schema.fields
            if name != "occurredOn" and f"{schema.name}.{name}" not in masked
        ]
        text = when(col(EVENT_TYPE) == schema.name, to_json(struct(*fields), JSON_OPTIONS)).otherwise(text)
    return F.coalesce(text, lit("{}"))


def _iso(name: str) -> Column:
    return F.date_format(col(name), "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
