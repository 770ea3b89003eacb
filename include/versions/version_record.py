"""The version registry's record of a read model: its versions, and the stage of each. Pure data, without Kafka."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from include.kafka.topics import changelog_topic
from include.position import Offsets
from include.unknown_fields import ignore_unknown_fields


class Stage(StrEnum):
    """The stage of a version's life."""

    BUILDING = "building"  # a rebuild folds it; stream driver and nodes ignore it
    CANDIDATE = "candidate"  # handed over: the stream driver folds it in real time, the nodes load it
    LIVE = "live"
    PREVIOUS = "previous"  # was live, kept for rollback
    RETIRED = "retired"
    ABANDONED = "abandoned"


ACTIVE_STAGES = frozenset({Stage.CANDIDATE, Stage.LIVE, Stage.PREVIOUS})
UNFINISHED_STAGES = frozenset({Stage.BUILDING, Stage.CANDIDATE})
ENDED_STAGES = frozenset({Stage.RETIRED, Stage.ABANDONED})


@dataclass(frozen=True)
class Version:
    """One version of a read model.

    run_id: the run of the rebuild that builds it; empty for a first version.
    live_since: ISO time at which a live version became live; empty for others.
    retire_after: ISO time after which a previous version is retired, if no clock is set; empty for others.
    grace_s: for how long a previous version is kept; None for others, and if an earlier release has replaced it.
    source_topic: the version of the read model's source topic that it folds; empty for the declared topic.
    start_offsets: of its source, by partition: the first event that it folds; empty for the first event of the log.
    replaced_in: revision of the record that replaced a previous version; 0 for others.
    rollback_reason: the reason of the newest rollback that made it live again; empty if there was none.
    """

    number: int
    stage: Stage
    fold_revision: int
    changelog_topic: str
    reason: str
    created_at: str
    run_id: str = ""
    live_since: str = ""
    retire_after: str = ""
    replaced_in: int = 0
    grace_s: float | None = None
    source_topic: str = ""
    start_offsets: tuple[int, ...] = ()
    rollback_reason: str = ""

    @property
    def starts(self) -> Offsets:
        """The offset of the first event that it folds, of each partition; empty for the first event of the log."""
        return Offsets.of_ends(self.start_offsets)

    @property
    def is_active(self) -> bool:
        """Whether the stream driver folds it and the query nodes may hold it."""
        return self.stage in ACTIVE_STAGES


@dataclass(frozen=True)
class ReadModelVersions:
    """The registry's record of one read model; `revision` increases by one with each change."""

    read_model: str
    revision: int
    versions: tuple[Version, ...]
    updated_at: str

    @property
    def live(self) -> Version | None:
        """The version that answers lookups."""
        return next((v for v in self.versions if v.stage is Stage.LIVE), None)

    @property
    def candidate(self) -> Version | None:
        """The version that a rebuild has handed over and not promoted yet, if any."""
        return next((v for v in self.versions if v.stage is Stage.CANDIDATE), None)

    @property
    def unfinished(self) -> Version | None:
        """The version that a rebuild is building, if any."""
        return next((v for v in self.versions if v.stage in UNFINISHED_STAGES), None)

    def version(self, number: int) -> Version | None:
        """Return the version with this number in any stage, or None."""
        return next((v for v in self.versions if v.number == number), None)

    def of_run(self, run_id: str) -> Version | None:
        """Return the version that a run of a rebuild has registered, in any stage, or None."""
        return next((v for v in self.versions if v.run_id == run_id), None)

    def stage_of(self, number: int) -> Stage | None:
        """Return the stage of a version; None for one that does not exist yet.

        The record does not list every ended version (include/maintenance.py), so a lower number that it does not list has ended.
        """
        version = self.version(number)
        if version is not None:
            return version.stage
        is_forgotten = 0 < number < max((v.number for v in self.versions), default=0)
        return Stage.RETIRED if is_forgotten else None

    @property
    def active(self) -> tuple[Version, ...]:
        """All versions that are folded, in ascending order of number."""
        return tuple(v for v in self.versions if v.is_active)

    def to_json(self) -> bytes:
        """Return the record as a message's value."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: bytes) -> "ReadModelVersions":
        """Parse a message's value; raises ValueError, KeyError or TypeError when it is not a record."""
        fields: dict[str, Any] = json.loads(value)
        versions = tuple(_version(v) for v in fields["versions"])
        return cls(**{**ignore_unknown_fields(cls, fields), "versions": versions})


def _version(fields: dict[str, Any]) -> Version:
    starts = tuple(fields.get("start_offsets", ()))
    known = ignore_unknown_fields(Version, fields)
    return Version(**{**known, "stage": Stage(fields["stage"]), "start_offsets": starts})


def first_version(read_model: str, fold_revision: int, source_topic: str = "") -> ReadModelVersions:
    """Return the first record of a read model: version 1, live at once. source_topic: as in Version."""
    now = datetime.now(UTC).isoformat()
    topic = changelog_topic(read_model, 1)
    version = Version(
        1, Stage.LIVE, fold_revision, topic, "first start", now, live_since=now, source_topic=source_topic
    )
    return ReadModelVersions(read_model=read_model, revision=1, versions=(version,), updated_at=now)
