"""The rule that a read model's key contains the entity of its events: only then are all events of a key in one partition.

The property `foldlake.key` of an event type's schema names the field that identifies the entity. The Kafka record's key has
the same value, and the producer chooses the partition by it. A key without this field combines events of several entities
from several partitions, so that "the first n events of the key" is undefined (docs/decisions/0006).

Only Spark can resolve the columns that a key uses: spark_jobs/folding/key_columns.py does so when a query starts.
"""

from collections.abc import Collection, Sequence

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION, TIMESTAMP, type_column
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

REKEY_REMEDY = (
    "declare `rekey=True` in the read model, under another name if it has versions already (docs/read-models.md, Another key than the "
    "events'), or make a route's output its source (docs/routes.md)"
)
# The columns of Kafka's record, which are others in the re-keyed topic.
RECORD_COLUMNS = (KEY, PARTITION, OFFSET, TIMESTAMP)


def require_entity(read_model: str, schema: RecordSchema, key: str, columns: Sequence[str]) -> None:
    """Raise ReadModelError if a key does not contain an event type's entity.

    Args:
        read_model: name of the read model.
        schema: of the event type; without the property `foldlake.key` there is nothing to check.
        key: the key's column as Spark formats it, for the message.
        columns: the event columns that the key uses, as `event_columns.resolved` returns them.
    """
    if schema.key_field is None or contains_entity(schema, columns):
        return
    made_of = f"is made of {', '.join(map(_plain, columns))}" if columns else "is made of no column"
    raise ReadModelError(
        f"The key of read model {read_model}, {key}, {made_of}, and lacks {schema.key_field}, by which {schema.name} events are "
        f"keyed: the events of one key are in several partitions, in no common order. Add {schema.key_field} to the key, or "
        f"{REKEY_REMEDY}."
    )


def require_event_fields(read_model: str, key: str, columns: Collection[str]) -> None:
    """Raise ReadModelError if the key of a re-keyed read model uses Kafka's record: it must be the same in the re-keyed topic."""
    used = [name for name in RECORD_COLUMNS if name in {column.casefold() for column in columns}]
    if used:
        raise ReadModelError(
            f"The key of read model {read_model}, {key}, uses {', '.join(map(_plain, used))} of Kafka's record, which re-keying changes: use fields of "
            "the event."
        )


def contains_entity(schema: RecordSchema, columns: Collection[str]) -> bool:
    """Return whether one of these event columns contains an event type's entity: its field, or the Kafka record's key."""
    entity = {f"{schema.key_field}", f"{type_column(schema.name)}.{schema.key_field}", KEY}
    # Spark does not distinguish upper and lower case in names.
    return not {name.casefold() for name in entity}.isdisjoint(name.casefold() for name in columns)


def _plain(column: str) -> str:
    """Return a column without the prefix of internal names."""
    return column.rpartition(":")[2]
