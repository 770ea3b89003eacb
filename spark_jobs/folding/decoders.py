"""Chooses the decoder of a topic by the format of its events."""

from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from spark_jobs.folding.decode import EventDecoder, SchemaIds
from spark_jobs.folding.json_decode import JsonDecoder


def event_decoder(events: TopicEvents, schema_ids: SchemaIds, partitions: int) -> EventDecoder | JsonDecoder:
    """Return the decoder of a topic's events; partitions: of the topic. JSON has no schema ids, and no read model's key."""
    if events.event_format is EventFormat.JSON:
        return JsonDecoder(events.readers, partitions)
    return EventDecoder(events.readers, schema_ids, partitions, events.record_key)
