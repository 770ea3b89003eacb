"""What a reset would change, as `./foldlake reset --dry-run` shows it: both folds compared. Pure data."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class FieldChange:
    """A field of one key's state, as text, with the live version's start and with the new one; None: the key has no record."""

    before: str | None
    after: str | None


@dataclass(frozen=True)
class KeyChange:
    """A key whose record changes; `events` is the number of its events."""

    key: str
    events: FieldChange
    fields: dict[str, FieldChange]


@dataclass(frozen=True)
class ResetPreview:
    """The live version's fold of the log, and that of the same fold revision from the new start on.

    starts: by partition, where the live version and the new one start; empty: at the first event of the log.
    events, keys: with the live version's start, with the new one. changed, added, gone: numbers of keys; changed: in a field of the state.
    totals: numeric field of the state -> its sum over all keys. largest: the largest changes, by the first numeric field of the state, else
        by the number of events.
    """

    read_model: str
    live: int
    starts: tuple[dict[str, int], dict[str, int]]
    events: tuple[int, int]
    keys: tuple[int, int]
    changed: int
    added: int
    gone: int
    totals: dict[str, FieldChange]
    largest: tuple[KeyChange, ...]

    def to_json(self) -> str:
        """Return the preview as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ResetPreview":
        """Read what `to_json` has written."""
        fields = json.loads(text)
        pairs = {name: tuple(fields[name]) for name in ("starts", "events", "keys")}
        totals = {name: FieldChange(**change) for name, change in fields["totals"].items()}
        largest = tuple(
            KeyChange(
                change["key"],
                FieldChange(**change["events"]),
                {name: FieldChange(**field) for name, field in change["fields"].items()},
            )
            for change in fields["largest"]
        )
        return cls(**{**fields, **pairs, "totals": totals, "largest": largest})
