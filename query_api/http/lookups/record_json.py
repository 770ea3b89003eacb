"""The JSON form of a state record."""

from include.kafka.state_record import StateRecord


def record_fields(key: bytes, record: StateRecord) -> dict[str, object]:
    """Return a key's state record as a dictionary for JSON."""
    return {
        "key": key.decode(),
        "state": record.state,
        **record.position.record_fields(),
        "occurred_on": record.occurred_on,
    }
