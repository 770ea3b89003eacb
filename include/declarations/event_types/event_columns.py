"""The columns of decoded events: internal names, which no Avro name can equal, and the names that declarations use.

Spark compares names without regard to case. A field that all event types share hides an event type of its name, and both hide a column of
Kafka's record. What is hidden keeps its internal name, such as `record:offset` or `event:Rating.stars`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from include.kafka.record_schema import RecordSchema

KEY = "record:key"
VALUE = "record:value"
PARTITION = "record:partition"
OFFSET = "record:offset"
TIMESTAMP = "record:timestamp"
EVENT_TYPE = "record:event_type"
# The columns that declarations can name.
NAMED = {
    internal.partition(":")[2]: internal
    for internal in (EVENT_TYPE, KEY, VALUE, PARTITION, OFFSET, TIMESTAMP)
}


def type_column(event_type: str) -> str:
    """Return the column of an event type: the struct of its fields, null for an event of another type."""
    return f"event:{event_type}"


def shared_fields(readers: Sequence[RecordSchema]) -> tuple[str, ...]:
    """Return the fields that all event types have, in the order of the first event type."""
    first, *others = readers
    return tuple(name for name in first.fields if all(name in other.fields for other in others))


@lru_cache(maxsize=1024)
def short_names(readers: tuple[RecordSchema, ...]) -> Mapping[str, str]:
    """Return the names that declarations can use for internal columns: short name -> internal name, without those that are hidden."""
    found: dict[str, str] = {}
    taken = {name.casefold() for name in shared_fields(readers)}
    for names in ({reader.name: type_column(reader.name) for reader in readers}, NAMED):
        free = {short: internal for short, internal in names.items() if short.casefold() not in taken}
        found |= free
        taken |= {short.casefold() for short in free}
    return found


def hidden_columns(readers: tuple[RecordSchema, ...]) -> list[str]:
    """Return the internal columns whose short name a field or an event type hides."""
    columns = (*(type_column(reader.name) for reader in readers), *NAMED.values())
    return sorted(set(columns) - set(short_names(readers).values()))


def column_name(internal: str, readers: tuple[RecordSchema, ...]) -> str:
    """Return the short name of an internal column, or its internal name if that is hidden."""
    return next((short for short, name in short_names(readers).items() if name == internal), internal)


def resolved(column: str, readers: Iterable[RecordSchema]) -> str:
    """Return the column that a name means: `<field>` of all event types, `event:<EventType>.<field>` or `record:<name>`."""
    first, dot, rest = column.partition(".")
    for short, internal in short_names(tuple(readers)).items():
        if first.casefold() in {short.casefold(), internal.casefold()}:
            return f"{internal}{dot}{rest}"
    return column
