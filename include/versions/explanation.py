"""Where the state of one key comes from, as `./foldlake explain` and the nodes' page show it: its events, with the state after each.

Also which versions of the read model an explanation shows and compares.
"""

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import quote

from include.errors import FoldlakeError

if TYPE_CHECKING:
    from include.declarations.read_model import ReadModel
    from include.versions.version_record import ReadModelVersions, Version

# The module that explains a key, run with `python -m` and the arguments of ExplainArguments (key_explanation.py).
PROGRAM = "include.replay.explain"


# The text of an object. In documents, it is the object itself, whose JSON type the annotation says.
ObjectText = Annotated[str, "object"]


class NotExplainedError(FoldlakeError):
    """The key could not be explained."""


def key_argument(key: str) -> str:
    """Return the argument that gives the program a key: in percent encoding, because no argument of a process can have the character NUL.

    Raises NotExplainedError for a key that is not Unicode, which a shell can pass.
    """
    try:
        return f"--key={quote(key, safe='')}"
    except UnicodeEncodeError as error:
        raise NotExplainedError(f"The key {key!r} is not UTF-8: no record has it.") from error


@dataclass(frozen=True)
class ExplainedEvent:
    """One event of the key, and the state after it.

    number: of the event, from 1, among those of the key that the version folds.
    written_at, occurred_on: ISO times: of the record in Kafka, and of the event.
    event, state: JSON objects, as text with exact decimals. A field of the state is null where the fold gives no value. state: null if
        the item has ended: it then has no record.
    """

    number: int
    partition: int
    offset: int
    written_at: str
    occurred_on: str
    event_type: str
    event: ObjectText
    state: ObjectText | None


@dataclass(frozen=True)
class ExplainedVersion:
    """What a version makes of the key's events.

    version: its number; None for the newest fold revision of the read model if no version is built with it. stage: empty then.
    starts: partition -> offset of the first event that it folds; empty for the whole log.
    event_count: events of the key. state: as in ExplainedEvent; None also if the key has no events.
    """

    version: int | None
    stage: str
    fold_revision: int
    source_topic: str
    starts: dict[str, int]
    event_count: int
    state: ObjectText | None


@dataclass(frozen=True)
class Explanation:
    """The events behind the state of a key in one version, and what the other versions make of the key.

    events: the first and the newest ones, in order; their numbers show the gap between them.
    read_from, read_until: partition -> offsets of the part of the log that was read; `records_read`: their number.
    masked: fields whose values are left out because they are personal: `<EventType>.<field>`.
    leaves: why the key may have no record although its state is shown; empty if it stays.
    difference: how a query node's record of the key differs from the fold of the events up to its position, which is a fault; empty if it
        does not, or if it was not compared.
    """

    read_model: str
    key: str
    explained_at: str
    shown: ExplainedVersion
    events: tuple[ExplainedEvent, ...]
    others: tuple[ExplainedVersion, ...]
    read_from: dict[str, int]
    read_until: dict[str, int]
    records_read: int
    masked: tuple[str, ...] = ()
    leaves: str = ""
    difference: str = ""

    # Properties that are in the document.
    COMPUTED: ClassVar[tuple[str, ...]] = ("hidden_events",)

    @property
    def hidden_events(self) -> int:
        """The number of events between the first and the newest ones shown."""
        return self.shown.event_count - len(self.events)

    def document(self) -> dict[str, Any]:
        """Return the explanation for programs: events and states as objects, whose numbers with decimal places are Decimal."""
        found = asdict(self)
        for event in found["events"]:
            event["event"], event["state"] = object_of(event["event"]), object_of(event["state"])
        for version in (found["shown"], *found["others"]):
            version["state"] = object_of(version["state"])
        return found | {name: getattr(self, name) for name in self.COMPUTED}

    def to_json(self) -> str:
        """Return the explanation as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """Read what `to_json` or `failure_json` has written; raises NotExplainedError with the reason in the latter."""
        fields = json.loads(text)
        if "error" in fields:
            raise NotExplainedError(fields["error"])
        return cls(
            **{
                **fields,
                "shown": ExplainedVersion(**fields["shown"]),
                "events": tuple(ExplainedEvent(**event) for event in fields["events"]),
                "others": tuple(ExplainedVersion(**version) for version in fields["others"]),
                "masked": tuple(fields["masked"]),
            }
        )


def failure_json(error: FoldlakeError) -> str:
    """Return the reason why there is no explanation, as JSON."""
    return json.dumps({"error": str(error)})


def object_of(text: str | None) -> dict[str, Any] | None:
    """Return the object of a JSON text; numbers with decimal places are Decimal and keep their scale."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


def field_texts(text: str | None) -> dict[str, str]:
    """Return the fields of a JSON object, each as text for people; empty for None."""
    return {name: _text(value) for name, value in (object_of(text) or {}).items()}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class ExplainedStep:
    """An event as it is shown: the number of events before it that are left out, and the fields of the state that it has changed."""

    event: ExplainedEvent
    skipped: int
    changed: frozenset[str]

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the event as text."""
        return field_texts(self.event.event)

    @property
    def state(self) -> dict[str, str]:
        """The fields of the state after it as text; empty if the item has ended."""
        return field_texts(self.event.state)


def steps(explanation: Explanation) -> list[ExplainedStep]:
    """Return the events of an explanation as they are shown. After events that are left out, it is not known what one has changed."""
    found: list[ExplainedStep] = []
    before = 0
    state: str | None = None
    for event in explanation.events:
        skipped = event.number - before - 1
        old, new = field_texts(state), field_texts(event.state)
        changed = frozenset() if skipped or not before else frozenset(n for n in new if new[n] != old.get(n))
        found.append(ExplainedStep(event, skipped, changed))
        before, state = event.number, event.state
    return found


class NoVersionToExplainError(FoldlakeError):
    """The read model has no such version, or the module no longer has its fold."""


def version_to_explain(
    record: "ReadModelVersions | None", model: "ReadModel", number: int | None
) -> "Version":
    """Return the version with this number, or the live one; raises NoVersionToExplainError.

    record: the version registry's, None if it has none of the read model.
    """
    if record is None or (number is None and record.live is None):
        raise NoVersionToExplainError(
            f"{model.name} has no live version yet: the stream driver registers version 1 when it first starts."
        )
    found = record.live if number is None else record.version(number)
    if found is None:
        known = ", ".join(str(version.number) for version in record.versions)
        raise NoVersionToExplainError(
            f"{model.name} has no version {number}; known: {known}. See ./foldlake versions."
        )
    if found.fold_revision not in model.folds:
        raise NoVersionToExplainError(
            f"{model.name} v{found.number} was folded by revision {found.fold_revision}, which its module no longer has "
            f"(only {', '.join(map(str, sorted(model.folds)))})."
        )
    return found


def versions_to_compare(record: "ReadModelVersions", model: "ReadModel", shown: "Version") -> "list[Version]":
    """Return the other versions that have not ended and whose fold the module has, in ascending order."""
    others = {
        version.number: version for version in (*record.active, record.unfinished) if version is not None
    }
    others.pop(shown.number, None)
    return [others[number] for number in sorted(others) if others[number].fold_revision in model.folds]
