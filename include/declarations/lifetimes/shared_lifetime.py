"""The lifetime of a read model's items, which all of its event types must declare."""

from collections.abc import Iterable

from include.errors import ReadModelError
from include.kafka.record_schema import LIFETIME_PROPERTY, ItemLifetime, RecordSchema


def shared_lifetime(read_model: str, schemas: Iterable[RecordSchema]) -> ItemLifetime:
    """Return the lifetime that the schemas of all event types declare; raises ReadModelError if they do not declare the same one."""
    by_type = {schema.name: schema.lifetime for schema in schemas}
    first, *others = set(by_type.values())
    if first is None or others:
        raise ReadModelError(
            f"Read model {read_model} has items that end, but its event types do not declare one {LIFETIME_PROPERTY}: give the schemas of "
            f"{', '.join(by_type)} the same one."
        )
    return first
