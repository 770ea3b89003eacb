"""The query of one version of a read model: events -> state by key -> state records on the changelog."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.functions import array, coalesce, col, concat, count, lit, struct, when

from include.declarations.event_types.event_columns import NAMED, column_name
from include.declarations.read_model import ReadModel
from include.declarations.rules.expression import Fields
from include.errors import ReadModelError
from include.kafka.dead_letters import FAILURE_HEADER
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header
from include.position import POSITION_RECORD_FIELDS, PositionField
from spark_jobs.folding.decode import EventDecoder, good_events
from spark_jobs.folding.expressions.analysed import as_column
from spark_jobs.folding.expressions.avro_columns import avro_record
from spark_jobs.folding.expressions.columns import column_of, field_columns
from spark_jobs.folding.expressions.failed_expressions import (
    aggregated,
    attempt,
    can_raise,
    first_failure,
    is_event,
    is_never_null,
    named,
    raises,
    required_columns,
)
from spark_jobs.folding.lifetimes import HAS_ENDED, has_ended, item_groups, removal_headers
from spark_jobs.folding.written_states import FAILED, RecordCheck, aggregated_states, has_failed


def fold(model: ReadModel, revision: int, events: DataFrame) -> DataFrame:
    """Return the state of each key that stays: `key`, the state's fields, then the position's (design: state record).

    Raises ReadModelError when the module no longer has this revision: no other revision may continue its state.
    """
    states = folded(model, revision, events.groupBy(column_of(model.key).cast("string").alias("key")))
    return states.where(~col(HAS_ENDED) & ~has_failed(states)).drop(HAS_ENDED, FAILED)


def folded(
    model: ReadModel,
    revision: int,
    groups: GroupedData,
    others: Sequence[Column] = (),
    *,
    is_partial: bool = False,
) -> DataFrame:
    """Return the state of each group of events: the state's fields, the position's, HAS_ENDED, other aggregates, and FAILED if it can fail.

    is_partial: see RecordCheck. Raises ReadModelError as `state_columns` does.
    """
    check = record_check(model, revision, is_partial=is_partial)
    columns = state_columns(model, revision)
    return aggregated_states(groups, columns, (has_ended(model), *others), check=check)


def record_check(model: ReadModel, revision: int, *, is_partial: bool = False) -> RecordCheck:
    """Return the check of states that this fold has made."""
    required = required_columns(model.event_schemas)
    return RecordCheck(
        f"Fold {revision} of {model.name}", model.state_schema_of(revision), required, is_partial
    )


def state_columns(model: ReadModel, revision: int) -> list[Column]:
    """Return the aggregates that turn a group of events into a state record: the state's fields, then the position's.

    Raises ReadModelError when the module lacks this revision, or the fold returns other fields than the module declares.
    """
    rule = model.folds.get(revision)
    if rule is None:
        message = (
            f"Read model {model.name} has no fold revision {revision} (only {sorted(model.folds)}), but a version built "
            "with it is active: put the old revision back."
        )
        raise ReadModelError(message)

    def position(field: PositionField) -> Column:
        if field.maximum_of is None:
            return count(lit(1))
        # The short name where there is one: a fold that has the same aggregate shares it, as in the checkpoints of older releases.
        internal = NAMED.get(field.maximum_of, field.maximum_of)
        return F.max(column_name(internal, model.event_schemas))

    return _record_columns(model, revision, "Fold", rule, position)


def fold_failure(model: ReadModel, revision: int, events: DataFrame) -> Column | None:
    """Return what of a fold fails for a decoded event, which is then not folded: `key`, or a field of the state; null if nothing does.

    The key fails if it raises an error or is null, a field if the value of the event that it aggregates raises an error. Wherever events
    are folded, this decides which of them are. Raises ReadModelError when the module lacks this revision.
    """
    key = column_of(model.key).cast("string").alias("key")
    columns = aggregated(events.groupBy(key).agg(*state_columns(model, revision), has_ended(model)))
    required = required_columns(model.event_schemas)
    failures: list[Column] = []
    for name, inputs in columns:
        part = {"key": "key", HAS_ENDED: "ended"}.get(name, f"field {name}")
        failing = [raises(is_event(), as_column(found)) for found in inputs if can_raise(found)]
        failures += [named(part, condition) for condition in failing]
        if name == "key" and not is_never_null(inputs[0], required):
            text = attempt(when(is_event(), key)) if failing else key
            failures.append(named(part, is_event() & text.isNull()))
    return first_failure(failures)


def foldable(model: ReadModel, revision: int, events: DataFrame) -> DataFrame:
    """Return the decoded events without those for which the fold fails."""
    failure = fold_failure(model, revision, events)
    return events if failure is None else events.where(failure.isNull())


def merge_columns(model: ReadModel, revision: int) -> list[Column]:
    """Return the aggregates that merge state records of one key, each of a part of its events: the state's fields, then the position's.

    Raises ReadModelError when the merge returns other fields than the module declares.
    """
    merge = model.merge(revision)
    assert merge is not None  # noqa: S101 - the caller has checked it
    return _record_columns(model, revision, "Merge", merge, _merged_position_column)


def _record_columns(
    model: ReadModel,
    revision: int,
    what: str,
    rule: Fields,
    position: Callable[[PositionField], Column],
) -> list[Column]:
    state = field_columns(rule)
    declared = [field.name for field in model.state_fields(revision)]
    if sorted(state) != sorted(declared):
        message = f"{what} {revision} of {model.name} returns {sorted(state)}, but the state declares {sorted(declared)}."
        raise ReadModelError(message)
    fields = [position(field).alias(field.name) for field in POSITION_RECORD_FIELDS]
    return [*(state[name].alias(name) for name in declared), *fields]


def _merged_position_column(field: PositionField) -> Column:
    return F.sum(field.name) if field.maximum_of is None else F.max(field.name)


def changelog_records(model: ReadModel, revision: int, states: DataFrame, state_schema_id: int) -> DataFrame:
    """Return states as Kafka records: key in UTF-8, value as an Avro state record in Confluent's wire format.

    The record of an item that has ended, or of a state that cannot be written, is a removal: no value, and the position in the headers.
    """
    schema = model.state_schema_of(revision)
    fields = {name: col(name) for name in schema.fields}
    record = avro_record(f"Fold {revision} of {model.name}", schema, fields, states)
    key, value = col("key").cast("binary").alias("key"), concat(lit(header(state_schema_id)), record)
    headers = []
    if FAILED in states.columns:
        failure = struct(lit(FAILURE_HEADER).alias("key"), col(FAILED).cast("binary").alias("value"))
        headers.append(when(col(FAILED).isNotNull(), concat(removal_headers(), array(failure))))
    if model.ended is not None:
        headers.append(when(col(HAS_ENDED), removal_headers()))
    if not headers:
        return states.select(key, value.alias("value"))
    found = coalesce(*headers)
    return states.select(key, when(found.isNull(), value).alias("value"), found.alias("headers"))


def changelog_stream(
    source: DataFrame,
    model: ReadModel,
    revision: int,
    schema_ids: SchemaIds,
    state_schema_id: int,
    partitions: int,
    *,
    is_exact: bool = True,
) -> DataFrame:
    """Return the changelog records for the records of the source topic: the whole computation of one version's query.

    is_exact: whether the version's state has the parts of exact sums (see aggregated_states).
    """
    events = EventDecoder(model.event_schemas, schema_ids, partitions, model.events.record_key).decode(source)
    folded = good_events(events, failure=fold_failure(model, revision, events))
    groups = item_groups(model, folded, column_of(model.key).cast("string").alias("key"))
    states = aggregated_states(
        groups,
        state_columns(model, revision),
        (has_ended(model),) if model.ended else (),
        check=record_check(model, revision),
        is_exact=is_exact,
    )
    return changelog_records(model, revision, states, state_schema_id)
