"""A state record as JSON has it."""

from include.kafka.state_record import StateRecord


def record_fields(key: bytes, record: StateRecord) -> dict[str, object]:
    """Return a key's state record, to be written as JSON."""
    return {
        "key": key.decode(),
        "state": record.state,
        "event_count": record.event_count,
        "source_partition": record.source_partition,
        "source_offset": record.source_offset,
        "occurred_on": record.occurred_on,
    }
