"""The schema ids of a topic's records: those whose schema is known, and those that are rejected."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection, read_rejections
from include.kafka.schema_registry import JOB_PATIENCE_S, SchemaRegistry
from include.position import Offsets
from include.settings import Settings

# Precedes the header of a record in the error of a query that stops at its schema id.
UNKNOWN_SCHEMA_ID = "FOLDLAKE_UNKNOWN_SCHEMA_HEADER"


@dataclass(frozen=True)
class SchemaIds:
    """The known schema ids of a source topic.

    writers: id -> the schema of the records that have this id.
    rejected: id -> the records that are rejected because the id was not in the registry, even if it is in `writers` now.
    stop_at_unknown: whether any other record fails the query, which then looks its id up and restarts; if false, the record is
        rejected.
    """

    writers: Mapping[int, RecordSchema]
    rejected: Mapping[int, Rejection] = field(default_factory=dict)
    stop_at_unknown: bool = True


def known_schema_ids(settings: Settings, topic: str, ids: AbstractSet[int]) -> SchemaIds:
    """Return the schema ids of the topic's subject in the registry, and these ids; those that live queries have rejected stay rejected.

    Raises RegistryUnavailableError or KafkaUnavailableError.
    """
    registry = SchemaRegistry(settings.registry.connection, patience_s=JOB_PATIENCE_S)
    writers = registry.schema_ids(topic)
    writers |= {i: schema for i in ids - writers.keys() if (schema := registry.schema_by_id(i)) is not None}
    absent = {schema_id: Rejection(Offsets(), is_open=True) for schema_id in ids - writers.keys()}
    # After the lookups: an id that was registered since it was rejected is in `writers`, and its rejection has been written.
    rejected = read_rejections(settings.kafka_connection, topic)
    return SchemaIds(writers, rejected | absent)
