"""When the items of a read model leave it: with an event that ends them, or by event time without one."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from include.errors import ReadModelError
from include.kafka.record_schema import LIFETIME_PROPERTY, ItemLifetime, RecordSchema
from include.settings import StreamSettings


@dataclass(frozen=True)
class Expiry:
    """Items leave the stores once the newest item is later than their own time by the expiry time, even if no event ends them.

    time: the field of the events with the time of their item, such as the end of its window; the same in all events of the item.
    field: the field of the state with this time.
    after: the expiry time; None for FOLDLAKE_STREAM_EXPIRY_S.
    """

    time: str
    field: str
    after: timedelta | None = None

    def after_s(self, stream: StreamSettings) -> float:
        """Return the expiry time in seconds."""
        return stream.expiry_s if self.after is None else self.after.total_seconds()


def require_forgettable(
    name: str, expires: Expiry | None, state_fields: Collection[str], kept_by: Mapping[str, bool]
) -> None:
    """Raise ReadModelError if a read model whose items leave declares what only one has whose keys stay.

    kept_by: name of such a declaration -> whether the read model has it.
    """
    excluded = next((declared for declared, is_there in kept_by.items() if is_there), None)
    if excluded:
        raise ReadModelError(
            f"Read model {name} has items that end, so it can have neither merges nor another key: remove {excluded}, or "
            f"`{'expires' if expires else 'ended'}`."
        )
    if expires and expires.field not in state_fields:
        raise ReadModelError(
            f"Read model {name} expires by {expires.field}, which its state does not have: name one of its fields."
        )


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
