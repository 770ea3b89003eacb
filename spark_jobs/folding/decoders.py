"""Chooses the decoder of a topic by the format of its events."""

from include.declarations.event_types.event_format import EventFormat
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.decode import EventDecoder, SchemaIds
from spark_jobs.folding.json_decode import JsonDecoder


def event_decoder(
    event_format: EventFormat, readers: tuple[RecordSchema, ...], schema_ids: SchemaIds, partitions: int
) -> EventDecoder | JsonDecoder:
    """Return the decoder of the event types in `readers`; partitions: of their topic. JSON has no schema ids."""
    if event_format is EventFormat.JSON:
        return JsonDecoder(readers, partitions)
    return EventDecoder(readers, schema_ids, partitions)
