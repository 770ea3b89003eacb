"""The rules of keyed queries: that of an emission, with the state that its read model folds, and that of a flow with a state of its own."""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count, lit

from include.declarations.event_types.event_columns import KEY
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.position import EVENT_COUNT
from spark_jobs.folding.expressions.analysed import as_column
from spark_jobs.folding.expressions.columns import field_columns
from spark_jobs.folding.expressions.failed_expressions import (
    aggregated,
    can_raise,
    first_failure,
    is_event,
    named,
    raises,
)
from spark_jobs.folding.fold_query import fold_failure
from spark_jobs.folding.fold_query import state_columns as fold_columns
from spark_jobs.routing.keyed_query import STATE, STATE_NAME, KeyedRule
from spark_jobs.routing.privacy import columns_of


def emission_rule(emission: Emission, model: ReadModel, revision: int) -> KeyedRule:
    """Return the rule of an emission, for a version that is built with a fold revision."""
    return KeyedRule(
        name=emission.name,
        writer=emission.title,
        label=f"{emission}, fold {revision}",
        source_topic=model.source_topic,
        readers=model.event_schemas,
        failure=partial(fold_failure, model, revision),
        group=model.key,
        state=partial(fold_columns, model, revision),
        fields=emission.fields_of(revision),
        schema=emission.output_schema,
        where=emission.where,
        record_key=model.events.record_key,
    )


def flow_rule(flow: Flow) -> KeyedRule:
    """Return the rule of a flow with a state."""
    return KeyedRule(
        name=flow.name,
        writer=flow.title,
        label=str(flow),
        source_topic=flow.source_topic,
        readers=flow.event_schemas,
        failure=lambda events: state_failure(flow, events),
        group=_key,
        state=lambda: state_columns(flow),
        fields=flow.fields,
        schema=None if flow.fields is None else flow.output_schema,
        where=flow.where,
        made_of=lambda events: _made_of(flow, events),
    )


def state_columns(flow: Flow) -> list[Column]:
    """Return the aggregates of a flow's state, by name, and the number of events."""
    state = field_columns(flow.state or {})
    return [*(column.alias(name) for name, column in state.items()), count(lit(1)).alias(EVENT_COUNT.name)]


def state_failure(flow: Flow, events: DataFrame) -> Column | None:
    """Return which field of the state fails for a decoded event, which then does not count; null if none does, None if none can."""
    columns = aggregated(events.groupBy(_key().alias("key")).agg(*state_columns(flow)))
    return first_failure(
        [
            named(f"field {name}", raises(is_event(), as_column(found)))
            for name, inputs in columns
            for found in inputs
            if can_raise(found)
        ]
    )


def _made_of(flow: Flow, events: DataFrame) -> dict[str, set[str]]:
    """Return the columns that each field of the state is made of, and all of them for the state as a whole."""
    state = field_columns(flow.state or {})
    found = columns_of(events, state) if state else {}
    fields = {f"{STATE_NAME}.{name.casefold()}": columns or {STATE} for name, columns in found.items()}
    whole = {STATE}.union(*found.values())
    return {**fields, f"{STATE_NAME}.{EVENT_COUNT.name}": {STATE}, STATE_NAME: whole}


def _key() -> Column:
    """Return the key of the record: all events of a key are then in one partition, in one order."""
    return col(KEY).cast("string")
