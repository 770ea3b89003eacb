"""The query of an emission: events -> one output for each, with the state of its key after it, as the read model folds it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from include.declarations.emission import Emission
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import record_key
from include.kafka.origins import LanePartition, OutputOrigin
from spark_jobs.folding.decode import SchemaIds
from spark_jobs.folding.fold_query import fold_failure, state_columns
from spark_jobs.routing.keyed_query import KeyedQuery, KeyedRule


@dataclass(frozen=True)
class EmissionQuery:
    """The computation of an emission's query. revision: of the fold; the other arguments are those of KeyedQuery."""

    emission: Emission
    model: ReadModel
    revision: int
    partitions: int
    output_partitions: int
    tasks: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[LanePartition, OutputOrigin]
    topic: str = ""
    is_exact: bool = True

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic and dead letters, as KeyedQuery; raises ReadModelError as it does."""
        query = KeyedQuery(
            self._rule,
            self.partitions,
            self.output_partitions,
            self.tasks,
            self.schema_id,
            self.pseudonym_key,
            self.written,
            self.topic,
            self.is_exact,
        )
        return query.records(source, schema_ids)

    @property
    def _rule(self) -> KeyedRule:
        emission, model, revision = self.emission, self.model, self.revision
        return KeyedRule(
            name=emission.name,
            writer=f"Emission {emission.name}",
            label=f"emission {emission.name}, fold {revision}",
            source_topic=model.source_topic,
            readers=model.event_schemas,
            failure=partial(fold_failure, model, revision),
            group=model.key,
            state=partial(state_columns, model, revision),
            fields=emission.fields_of(revision),
            schema=emission.output_schema,
            where=emission.where,
            record_key=record_key(model),
        )
