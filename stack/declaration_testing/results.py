"""The results of declarations for some events, computed by the plans that the stream driver runs, from source record to written record."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.periodic_emission import PeriodicEmission
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import key_routes, rekeyed
from include.declarations.topic_options import EventsTopic
from include.errors import FoldlakeError
from include.kafka.dead_letters import FAILURE_HEADER, REASON_HEADER
from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import StateRecord, decode_state_record
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.folding.key_columns import require_entity_key
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule, flow_rule
from spark_jobs.routing.route_query import RouteQuery
from stack.declaration_testing.records import (
    DeadLetter,
    Event,
    JsonObject,
    as_written,
    avro_records,
    decoded,
    found_dead_letters,
    json_records,
    refused,
    rekeyed_records,
    require_no_dead_letters,
    schema_ids,
    source_offset,
)

PSEUDONYM_KEY = b"of a test"
# The schema id of state records.
STATE_ID = 1


def folded(
    spark: SparkSession,
    model: ReadModel,
    events: Sequence[Event],
    revision: int | None = None,
    *,
    allow_dead_letters: bool = False,
) -> dict[str, dict[str, Any]]:
    """Return the state of each key as its changelog record has it, without the position's fields. Keys that have ended are left out.

    Args:
        spark: a session of `declaration_session`.
        model: the read model, as declared or as loaded.
        events: in the order of the topic.
        revision: of the fold; None: the newest.
        allow_dead_letters: leave out events that the driver would write to the dead-letter topic, and keys whose state cannot be written.

    Raises:
        FoldlakeError: an event is none of the read model's types, or would be a dead letter; the state of a key cannot be written; or the
            driver would refuse the read model.
        PySparkException: the fold fails as a whole, as it would in the driver.
    """
    source = _source(spark, model, events, allow_dead_letters=allow_dead_letters)
    records = _state_records(source, revision, allow_dead_letters=allow_dead_letters)
    return {key: record.state for key, record in records.items()}


def routed(
    spark: SparkSession,
    flow: Flow,
    events: Sequence[Event] | Sequence[JsonObject],
    *,
    allow_dead_letters: bool = False,
) -> list[dict[str, Any]]:
    """Return the records that a route or another flow writes, in order: their fields, of a pseudonym its hash with a fixed key.

    Where JSON is read, the events are objects, or texts. Errors and `allow_dead_letters` are those of `folded`.
    """
    records = _records(spark, flow.events, events)
    require_no_dead_letters(records, flow, allow_dead_letters=allow_dead_letters)
    if flow.state is not None:
        keyed = KeyedQuery(flow_rule(flow), 1, 1, 1, 1, PSEUDONYM_KEY, {})
        return _outputs_of_each(
            keyed, records, flow.events, flow.written_schemas, allow_dead_letters=allow_dead_letters
        )
    outputs = _route_outputs(flow, records)
    return [
        decoded(bytes(row["value"]), flow.written_schemas)
        for row in sorted(outputs.collect(), key=source_offset)
    ]


def emitted(
    spark: SparkSession,
    emission: Emission,
    model: ReadModel,
    events: Sequence[Event],
    revision: int | None = None,
    *,
    allow_dead_letters: bool = False,
) -> list[dict[str, Any]]:
    """Return the records that an emission writes, in the order of the events. Arguments and errors are those of `folded`."""
    source = _source(spark, model, events, allow_dead_letters=allow_dead_letters)
    model = source.model
    rule = emission_rule(emission, model, revision or model.newest_fold_revision)
    query = KeyedQuery(rule, 1, 1, 1, 1, PSEUDONYM_KEY, {})
    return _outputs_of_each(
        query,
        source.records,
        model.events,
        (emission.output_schema,),
        allow_dead_letters=allow_dead_letters,
    )


def _outputs_of_each(
    query: KeyedQuery,
    records: DataFrame,
    read: TopicEvents,
    written: Sequence[RecordSchema],
    *,
    allow_dead_letters: bool,
) -> list[dict[str, Any]]:
    """Return the outputs of a query with a state for each key, in the order of the events."""
    found = []
    for number in range(records.count()):
        # In a batch, an aggregation has a row for each key only, with its newest event. The driver has one for each event.
        outputs = query.records(records.where(f"offset <= {number}"), schema_ids(read.readers)).collect()
        for row in outputs:
            if source_offset(row) != number:
                continue
            if row["value"] is not None:
                found.append(decoded(bytes(row["value"]), written))
            elif not allow_dead_letters:
                raise refused(DeadLetter(number, *_reason_of_letter(row)), read.topic)
    return found


def _reason_of_letter(letter: Row) -> tuple[str, str]:
    """Return the reason of a dead letter that a query with a state writes, and what fails."""
    headers = _headers(letter)
    return headers[REASON_HEADER], headers[FAILURE_HEADER]


def _headers(record: Row) -> dict[str, str]:
    headers = record.asDict().get("headers") or ()
    return {one["key"]: bytes(one["value"]).decode() for one in headers}


def ticked(
    spark: SparkSession, emission: PeriodicEmission, model: ReadModel, events: Sequence[Event], tick: datetime
) -> list[dict[str, Any]]:
    """Return the records that a periodic emission writes at a tick after these events, in the order of their keys.

    Errors are those of `folded`.
    """
    states = _state_records(_source(spark, model, events), None)
    schema = emission.output_schema
    outputs = (emission.record(key, states[key], tick) for key in sorted(states))
    return [
        decoded(b"\0\0\0\0\1" + as_written(schema, values, f"A record of {emission.name}"), [schema])
        for values in outputs
    ]


def dead_letters(
    spark: SparkSession,
    declaration: ReadModel | Flow,
    events: Sequence[Event] | Sequence[JsonObject],
) -> list[DeadLetter]:
    """Return the events that the driver would write to the dead-letter topic, in order."""
    if isinstance(declaration, ReadModel):
        bound = _bound(declaration)
        reader: ReadModel | Flow = _key_route(bound) or bound
    else:
        reader = declaration
    return found_dead_letters(_records(spark, reader.events, events), reader)


@dataclass(frozen=True)
class _Source:
    """A read model as it is loaded, and the records of the topic that it folds."""

    model: ReadModel
    records: DataFrame


def _source(
    spark: SparkSession, model: ReadModel, events: Sequence[Event], *, allow_dead_letters: bool = False
) -> _Source:
    """Return what a read model folds: of one that is re-keyed, the outputs of its route."""
    model = _bound(model)
    require_entity_key(spark, model)
    route = _key_route(model)
    records = _records(spark, (route or model).events, events)
    require_no_dead_letters(records, route or model, allow_dead_letters=allow_dead_letters)
    if route is not None:
        records = rekeyed_records(records, _route_outputs(route, records))
        require_no_dead_letters(records, model, allow_dead_letters=allow_dead_letters)
    return _Source(model, records)


def _bound(model: ReadModel) -> ReadModel:
    """Return a read model as it is loaded."""
    if not model.rekey or model.rekeyed_from is not None:
        return model
    return rekeyed(model, EventsTopic(model.source_topic, model.topic))


def _key_route(model: ReadModel) -> Flow | None:
    """Return the route that gives the events of a read model their key, if it has one."""
    return next(iter(key_routes({model.name: model}, model.schema_folders).values()), None)


def _records(
    spark: SparkSession, read: TopicEvents, events: Sequence[Event] | Sequence[JsonObject]
) -> DataFrame:
    if read.event_format is EventFormat.JSON:
        return json_records(spark, read.readers, events)
    return avro_records(spark, read.readers, [_event(one, number) for number, one in enumerate(events)])


def _event(event: Event | str, number: int) -> Event:
    if isinstance(event, str):
        raise FoldlakeError(f"Event {number} is a text: give the fields of an event in Avro as a dictionary.")
    return event


def _route_outputs(flow: Flow, records: DataFrame) -> DataFrame:
    query = RouteQuery(flow, 1, 1, 1, PSEUDONYM_KEY, {})
    return query.records(records, schema_ids(flow.event_schemas))


def _state_records(
    source: _Source, revision: int | None, *, allow_dead_letters: bool = False
) -> dict[str, StateRecord]:
    model, revision = source.model, revision or source.model.newest_fold_revision
    schema = model.state_schema_of(revision)
    rows = changelog_stream(
        source.records, model, revision, schema_ids(model.event_schemas), STATE_ID, 1
    ).collect()
    for row in rows:
        failure = _headers(row).get(FAILURE_HEADER)
        if failure and not allow_dead_letters:
            raise FoldlakeError(
                f"The state of key {bytes(row['key']).decode()} cannot be written ({failure}), and the key would have no record: correct the "
                "read model or the events, or give `allow_dead_letters=True` to leave the key out."
            )
    return {
        bytes(row["key"]).decode(): decode_state_record(bytes(row["value"]), lambda _: schema)
        for row in rows
        if row["value"] is not None
    }
