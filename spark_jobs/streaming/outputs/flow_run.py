"""The run of a flow's query: what it writes, and the rule that must not change while its outputs and its state rest on it."""

import json
import logging
from typing import Any

from pyspark.sql import DataFrame

from include.declarations.kinds.flow import Flow
from include.errors import ReadModelError, SchemaError
from include.kafka.origins import WrittenRecords
from include.kafka.schema_ids import SchemaIds
from include.position import Offsets
from include.stream.checkpoints import key_rule_path, state_rule_path, written_note_path
from include.stream.pseudonym_key import pseudonym_key
from include.stream.slot_planning import shuffle_partitions
from spark_jobs.folding.expressions.columns import expression_text, field_texts
from spark_jobs.folding.key_columns import require_entity_key
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import flow_rule
from spark_jobs.routing.route_query import RouteQuery
from spark_jobs.routing.written_outputs import WrittenOutputs
from spark_jobs.runtime.checkpoint import committed_offsets, read_text, write_text
from spark_jobs.streaming.query_spec import QueryEndpoints, StartRefusedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


class FlowRun:
    """The computation of a flow's query, and what it has written."""

    def __init__(self, context: StreamContext, flow: Flow, endpoints: QueryEndpoints) -> None:
        self._context = context
        self._flow = flow
        self._endpoints = endpoints
        self._schema_id = 0
        # Number of shuffle tasks; 0 without a state.
        self._tasks = 0
        self._written: WrittenOutputs | None = None

    def prepare(self) -> None:
        """Register the schemas of events and outputs.

        Raises StartRefusedError if the registry rejects one, or the flow's rule has changed.
        """
        if self._flow.state is not None:
            self._require_same_state()
        elif self._flow.of_read_model and self._flow.key is not None:
            self._require_same_key(expression_text(self._flow.key))
        try:
            self._context.register_event_types(self._flow)
            for schema in self._flow.written_schemas:
                self._schema_id = self._context.schema_registry.register(self._flow.output_topic, schema)
        except SchemaError as error:
            raise StartRefusedError(str(error)) from error
        self._written = WrittenOutputs(
            lambda: self._context.spark,
            self._context.consumer,
            written_note_path(self._endpoints.checkpoint),
            self._flow.output_topic,
            self._endpoints.sink_partitions,
            WrittenRecords(self._flow.name, self._flow.source_topic, self._tasks),
            self._committed,
        )

    def _require_same_key(self, key: str) -> None:
        """Store the rule of a derived route before its first start; afterwards, refuse another one.

        The read model's states rest on what is in the re-keyed topic: events under another key, or of a type whose earlier events are
        missing there, could not be taken back.
        """
        flow, spark = self._flow, self._context.spark
        location = key_rule_path(self._endpoints.checkpoint)
        stored = read_text(spark, location)
        current = json.dumps({"key": key, "event_types": sorted(flow.event_types)})
        if stored is None:
            try:
                require_entity_key(spark, self._context.models[flow.of_read_model])
            except ReadModelError as error:
                raise StartRefusedError(str(error)) from error
            write_text(spark, location, current)
        elif stored != current:
            raise StartRefusedError(
                f"the events of read model {flow.of_read_model} are re-keyed by {stored}, which is now {current}: undo the edit, and "
                "declare a read model under another name for the other key or event types"
            )

    def _require_same_state(self) -> None:
        """Store the state's rule and its number of shuffle tasks before the first start; afterwards, refuse another rule.

        The checkpoint has states that the rule has made, and the lanes of the outputs are numbered by the tasks.
        """
        flow, spark, settings = self._flow, self._context.spark, self._context.settings
        rule: dict[str, Any] = {
            "state": field_texts(flow.state or {}),
            "event_types": sorted(flow.event_types),
        }
        location = state_rule_path(self._endpoints.checkpoint)
        stored = read_text(spark, location)
        if stored is None:
            self._tasks = shuffle_partitions(settings.stream, self._endpoints.partitions)
            write_text(spark, location, json.dumps({**rule, "tasks": self._tasks}))
            return
        noted = json.loads(stored)
        self._tasks = noted.pop("tasks")
        if noted != rule:
            raise StartRefusedError(
                f"the state of {flow} was made with {json.dumps(noted)}, which is now {json.dumps(rule)}: undo the edit, and declare the "
                "new rule under another name"
            )

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the outputs that are not written yet."""
        flow, endpoints = self._flow, self._endpoints
        written = self._outputs.read()
        newest = {
            p: max(origin.offset for pair, origin in written.items() if pair.source == p) for p, _ in written
        }
        LOG.info("%s has written up to source offsets %s", flow, newest)
        key = pseudonym_key(self._context.settings)
        if flow.state is None:
            query = RouteQuery(
                flow, endpoints.partitions, endpoints.sink_partitions, self._schema_id, key, written
            )
            return query.records(source, schema_ids)
        # A query reads this setting when it starts; afterwards its checkpoint fixes the number.
        self._context.spark.conf.set("spark.sql.shuffle.partitions", str(self._tasks))
        keyed = KeyedQuery(
            flow_rule(flow),
            endpoints.partitions,
            endpoints.sink_partitions,
            self._tasks,
            self._schema_id,
            key,
            written,
            endpoints.sink_topic,
        )
        return keyed.records(source, schema_ids)

    def note(self) -> None:
        """Note what is written."""
        self._outputs.note()

    @property
    def _outputs(self) -> WrittenOutputs:
        if self._written is None:
            raise RuntimeError("the query has not been prepared")
        return self._written

    def _committed(self) -> Offsets:
        return committed_offsets(
            self._context.spark, self._endpoints.checkpoint, self._endpoints.source_topic
        )
