"""The rule that a read model's key contains its entity: only then do the events of one key stand in one partition.

An event type's schema names its entity's field with the property `foldlake.key`: the field that the Kafka record's key
repeats, and by which the producer chooses the partition. A key that lacks this field collects events of several entities,
from several partitions, and "the first n events of the key" means nothing (docs/decisions/0006).

Which columns a key is made of only Spark knows: spark_jobs/folding/key_columns.py asks it, where a query starts.
"""

from collections.abc import Collection, Sequence

from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

# A route is a stateless query from topic to topic. There are none yet, so that the remedy is the producer's.
REKEY_REMEDY = (
    "produce the events to another topic whose record key is the read model's key, and make that topic the read model's "
    "source (routes, which re-key a topic, are planned)"
)


def require_entity(read_model: str, schema: RecordSchema, key: str, columns: Sequence[str]) -> None:
    """Raise ReadModelError where a key does not contain an event type's entity.

    Args:
        read_model: name of the read model.
        schema: of the event type; without the property `foldlake.key` there is nothing to check.
        key: the key's column as Spark writes it, for the message.
        columns: the names of the event columns that the key is made of.
    """
    if schema.key_field is None or contains_entity(schema, columns):
        return
    made_of = f"is made of {', '.join(columns)}" if columns else "is made of no column"
    raise ReadModelError(
        f"The key of read model {read_model}, {key}, {made_of}, and lacks {schema.key_field}, by which {schema.name} events are "
        f"keyed: the events of one key stand in several partitions, in no common order. Add {schema.key_field} to the key, or "
        f"{REKEY_REMEDY}."
    )


def contains_entity(schema: RecordSchema, columns: Collection[str]) -> bool:
    """Whether one of these event columns holds the entity of an event type: its field, or the Kafka record's key."""
    entity = {f"{schema.key_field}", f"{schema.name}.{schema.key_field}", "key"}
    # Spark does not distinguish upper and lower case in names.
    return not {name.casefold() for name in entity}.isdisjoint(name.casefold() for name in columns)
