"""What a read model, a route or an emission makes of some events, computed by the code that runs in production."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from include.declarations.emission import Emission
from include.declarations.event_types.event_format import EventFormat
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import record_key
from include.declarations.route import Route
from include.errors import FoldlakeError
from include.position import POSITION_COLUMNS
from spark_jobs.folding.decode import EventDecoder, good_events
from spark_jobs.folding.fold_query import fold, fold_failure
from spark_jobs.routing.emission_query import EmissionQuery
from spark_jobs.routing.route_query import RouteQuery
from stack.declaration_testing.records import COLUMNS, Event, decoded, schema_ids, source_records

PSEUDONYM_KEY = b"of a test"


def folded(
    spark: SparkSession, model: ReadModel, events: Sequence[Event], revision: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return the state of each key, without the position's fields. revision: of the fold; None: the newest.

    Raises FoldlakeError for an event that is none of the read model's types.
    """
    records = source_records(spark, model.event_schemas, events)
    decoder = EventDecoder(model.event_schemas, schema_ids(model.event_schemas), 1, record_key(model))
    number = revision or model.newest_fold_revision
    decoded_events = decoder.decode(records)
    folded_events = good_events(decoded_events, failure=fold_failure(model, number, decoded_events))
    states = fold(model, number, folded_events)
    return {
        row["key"]: {
            name: value for name, value in row.asDict().items() if name not in {"key", *POSITION_COLUMNS}
        }
        for row in states.collect()
    }


def routed(spark: SparkSession, route: Route, events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the records that a route writes, in order: their fields, of a pseudonym its hash with a fixed key.

    Raises FoldlakeError for an event that is none of the route's types.
    """
    if route.source_format is EventFormat.JSON:
        raise FoldlakeError(f"Route {route.name} reads JSON: this helper writes events in Avro.")
    written = route.written_schemas
    query = RouteQuery(route, 1, 1, 1, PSEUDONYM_KEY, {})
    outputs = query.records(
        source_records(spark, route.event_schemas, events), schema_ids(route.event_schemas)
    )
    return [decoded(bytes(row["value"]), written) for row in outputs.collect()]


def emitted(
    spark: SparkSession,
    emission: Emission,
    model: ReadModel,
    events: Sequence[Event],
    revision: int | None = None,
) -> list[dict[str, Any]]:
    """Return the records that an emission writes, in the order of the events. revision: of the fold; None: the newest.

    Raises FoldlakeError for an event that is none of the read model's types.
    """
    query = EmissionQuery(
        emission, model, revision or model.newest_fold_revision, 1, 1, 1, 1, PSEUDONYM_KEY, {}
    )
    schemas = model.event_schemas
    found = []
    for number in range(len(events)):
        # In a batch, an aggregation has a row for each key only, with its newest event: here that is the last one of its key.
        records = source_records(spark, schemas, events[: number + 1])
        outputs = query.records(_only_key_of_last(records), schema_ids(schemas))
        found += [decoded(bytes(row["value"]), [emission.output_schema]) for row in outputs.collect()]
    return found


def _only_key_of_last(records: DataFrame) -> DataFrame:
    rows = records.collect()
    return records.sparkSession.createDataFrame(
        [row for row in rows if row["key"] == rows[-1]["key"]], COLUMNS
    )
