"""The format in which the events of a topic are written."""

from enum import StrEnum


class EventFormat(StrEnum):
    """AVRO: Avro records in Confluent's wire format. JSON: objects of plain JSON, which only a route reads.

    The schema of a JSON event type is an Avro schema, too: it names the fields and types that the objects are converted to.
    """

    AVRO = "avro"
    JSON = "json"
