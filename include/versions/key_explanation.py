"""Explains a key with any engine: which versions are explained, and what each makes of the events that the engine has found."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from include.declarations.event_types.privacy import Privacy, field_classes
from include.declarations.read_model import ReadModel
from include.position import Offsets
from include.settings import KafkaConnection
from include.versions.explanation import (
    ExplainedEvent,
    ExplainedVersion,
    Explanation,
    version_to_explain,
    versions_to_compare,
)
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version


@dataclass(frozen=True)
class ExplainArguments:
    """The arguments of the programs that explain a key.

    version: None for the live one. events: how many first, and how many newest events are shown. personal: whether personal fields of
    events are shown. result: the file to write, an Explanation as JSON, or `{"error": <text>}`, with which the program has not failed.
    """

    read_model: str
    key: str
    version: int | None
    events: int
    personal: bool
    result: Path

    @classmethod
    def parse(cls, description: str | None, arguments: Sequence[str] | None = None) -> "ExplainArguments":
        """Read the command line, by default that of this process."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--read-model", required=True, help="name of the read model")
        parser.add_argument("--key", required=True, help="the key, in percent encoding")
        parser.add_argument("--version", type=int, help="number of the version; by default the live one")
        parser.add_argument(
            "--events", type=int, required=True, help="how many first, and how many newest events"
        )
        parser.add_argument("--personal", action="store_true", help="show personal fields of events")
        parser.add_argument("--result", required=True, type=Path, help="the file to write, in JSON")
        found = parser.parse_args(arguments)
        return cls(
            found.read_model, unquote(found.key), found.version, found.events, found.personal, found.result
        )

    def masked(self, model: ReadModel) -> tuple[str, ...]:
        """Return the fields of events to leave out."""
        return () if self.personal else personal_fields(model)


@dataclass(frozen=True)
class FoldedState:
    """The number of a key's events, and their state as JSON; None: there are no events, or the item has ended, or the state cannot be written."""

    event_count: int
    state: str | None


class KeyLog(Protocol):
    """The events of a key on one version of the source topic, and the part of the log that was read for them.

    model: reads this version of the source topic. since, until: offsets by partition. Only the key's partition is read if the key
    determines it.
    """

    model: ReadModel
    since: Offsets
    until: Offsets

    def folded_state(self, revision: int, starts: Offsets) -> FoldedState:
        """Return the state of the key, of its events from these offsets on; raises ReadModelError when the module lacks this fold revision."""

    def explained_events(
        self, revision: int, starts: Offsets, limit: int, masked: Iterable[str]
    ) -> list[ExplainedEvent]:
        """Return the first and the newest `limit` events from these offsets on, in order, each with the state after it.

        masked: the fields of events to leave out, `<EventType>.<field>`.
        """

    def close(self) -> None:
        """Release the events."""


@dataclass(frozen=True)
class VersionsOfKey:
    """The versions that an explanation shows and compares."""

    shown: Version
    compared: tuple[Version, ...]

    @classmethod
    def of(cls, kafka: KafkaConnection, model: ReadModel, number: int | None) -> "VersionsOfKey":
        """Return those of a read model. number: of the version to show; None: the live one. Raises NoVersionToExplainError, KafkaUnavailableError."""
        with VersionRegistry(kafka) as registry:
            record = registry.read().get(model.name)
        shown = version_to_explain(record, model, number)
        assert record is not None  # noqa: S101 - or the version would not have been found
        return cls(shown, tuple(versions_to_compare(record, model, shown)))

    @property
    def all(self) -> tuple[Version, ...]:
        """Both."""
        return (self.shown, *self.compared)

    def next_version(self, revision: int) -> Version | None:
        """Return how a version with the newest fold revision would be built, unless there is one: a rebuild starts where the live one does."""
        if revision in {version.fold_revision for version in self.all}:
            return None
        live = next((one for one in self.all if one.stage is Stage.LIVE), self.shown)
        return replace(live, fold_revision=revision)


def explain_key(
    model: ReadModel,
    key: str,
    versions: VersionsOfKey,
    open_log: Callable[[ReadModel], KeyLog],
    limit: int,
    masked: Iterable[str],
) -> Explanation:
    """Return the explanation of a key: its events up to the end of the log, and what each version makes of them.

    Args:
        model: the read model, as declared.
        key: the key.
        versions: those to explain.
        open_log: returns the events of the key on the source topic of a model, up to its current end.
        limit: how many first, and how many newest events are shown.
        masked: the fields of events to leave out.
    """
    logs: dict[str, KeyLog] = {}
    try:
        for version in versions.all:
            reading = model.reading(version.source_topic)
            if reading.source_topic not in logs:
                logs[reading.source_topic] = open_log(reading)
        return _explained(model, key, versions, logs, limit, tuple(masked))
    finally:
        for log in logs.values():
            log.close()


def personal_fields(model: ReadModel) -> tuple[str, ...]:
    """Return the personal fields of the read model's events: `<EventType>.<field>`."""
    return tuple(
        f"{schema.name}.{name}"
        for schema in model.event_schemas
        for name, found in field_classes(schema).items()
        if found is Privacy.PERSONAL
    )


def _explained(
    model: ReadModel,
    key: str,
    versions: VersionsOfKey,
    logs: dict[str, KeyLog],
    limit: int,
    masked: tuple[str, ...],
) -> Explanation:
    shown = versions.shown
    log = logs[model.reading(shown.source_topic).source_topic]
    others = [_version(model, version, logs) for version in versions.compared]
    following = versions.next_version(model.newest_fold_revision)
    if following is not None:
        others.append(replace(_version(model, following, logs), version=None, stage=""))
    read = [p for p, end in log.until.items() if log.since.of(p) < end]
    return Explanation(
        model.name,
        key,
        datetime.now(UTC).isoformat(timespec="seconds"),
        _version(model, shown, logs),
        tuple(log.explained_events(shown.fold_revision, shown.starts, limit, masked)),
        tuple(others),
        {str(p): log.since.of(p) for p in read},
        {str(p): log.until.of(p) for p in read},
        sum(one.until.of(p) - one.since.of(p) for one in logs.values() for p in one.until),
        masked,
        _leaves(model),
    )


def _version(model: ReadModel, version: Version, logs: dict[str, KeyLog]) -> ExplainedVersion:
    log = logs[model.reading(version.source_topic).source_topic]
    found = log.folded_state(version.fold_revision, version.starts)
    return ExplainedVersion(
        version.number,
        version.stage.value,
        version.fold_revision,
        log.model.source_topic,
        {str(p): offset for p, offset in version.starts.items()},
        found.event_count,
        found.state,
    )


def _leaves(model: ReadModel) -> str:
    if model.expires is None:
        return ""
    return "Keys of this read model expire: a key has no record once the model's newest item is much later than its own."
