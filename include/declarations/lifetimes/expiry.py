"""When the items of a read model expire: by event time, without an event that ends them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from include.errors import ReadModelError
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


class Leaving(Protocol):
    """What a read model declares of items that leave it: the fields of ReadModel that are named so."""

    @property
    def name(self) -> str: ...  # noqa: D102 - as in ReadModel
    @property
    def state(self) -> Sequence[Any]: ...  # noqa: D102
    @property
    def ended(self) -> Callable[[], Any] | None: ...  # noqa: D102
    @property
    def expires(self) -> Expiry | None: ...  # noqa: D102
    @property
    def merges(self) -> Mapping[int, Any]: ...  # noqa: D102
    @property
    def rekey(self) -> bool: ...  # noqa: D102


def require_forgettable(model: Leaving) -> None:
    """Raise ReadModelError if the items of a read model leave, and it declares what only one has whose keys stay."""
    expires = model.expires
    if (model.ended or expires) and (model.merges or model.rekey):
        raise ReadModelError(
            f"Read model {model.name} has items that end, so it can have neither merges nor another key: remove "
            f"{'merges' if model.merges else 'rekey'}, or `{'ended' if model.ended else 'expires'}`."
        )
    if expires and expires.field not in {field.name for field in model.state}:
        raise ReadModelError(
            f"Read model {model.name} expires by {expires.field}, which its state does not have: name one of its fields."
        )
