"""The state of a node, which its materializer publishes to its HTTP workers: owners, versions, ready partitions."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from include.boot_clock import Moment, age_s, boot_id
from include.settings import Placement
from query_api import shared_file
from query_api.shared_file import FileWatch

FILE_NAME = "node-state"


@dataclass(frozen=True)
class PartitionState:
    """A changelog partition that this node follows into its store.

    is_ready: the store has caught up with the partition since this node started to follow it.
    end_offset: the changelog's end offset as last fetched; negative while unknown.
    folded: the offset after the newest event of the source partition in the records that were read.
    confirmed_at: Unix time in seconds of the last read of the changelog's end that the store has reached since.
    as_of: Unix time in seconds up to which the store contains everything: `confirmed_at`, or the earlier time at which the
        folds began to stand still. Both times have a meaning only for a partition that is ready.
    confirmed_boot_s, as_of_boot_s: the same by the boot clock, which measures their ages; None in the state of an earlier release.
    """

    is_ready: bool = False
    end_offset: int = -1
    folded: int = 0
    confirmed_at: float = 0.0
    as_of: float = 0.0
    confirmed_boot_s: float | None = None
    as_of_boot_s: float | None = None

    @cached_property
    def as_of_text(self) -> str:
        """`as_of` in ISO 8601; computed once for each state, because every answer contains it."""
        return datetime.fromtimestamp(self.as_of, UTC).isoformat(timespec="milliseconds")

    def lag_ms(self) -> int:
        """Return the milliseconds since `as_of`."""
        return max(0, int(age_s(self.as_of, self.as_of_boot_s) * 1000))

    def unconfirmed_s(self) -> float:
        """Return the seconds since `confirmed_at`."""
        return age_s(self.confirmed_at, self.confirmed_boot_s)

    @property
    def confirmed(self) -> Moment:
        """`confirmed_at` as a moment."""
        if self.confirmed_boot_s is None:
            return Moment.of_unix(self.confirmed_at)
        return Moment(self.confirmed_boot_s, self.confirmed_at)

    def standing_still(self, since: Moment) -> "PartitionState":
        """Return the state of the partition whose folds stand still since a moment."""
        as_of = min(self.confirmed, since)
        return replace(self, as_of=as_of.unix_s, as_of_boot_s=as_of.boot_s)


@dataclass(frozen=True)
class VersionState:
    """A version of a read model on this node.

    still_since: Unix time in seconds since when events have waited and none was folded; None while the folds keep up.
    still_since_boot_s: the same by the boot clock; None in the state of an earlier release too.
    write_error: why nothing can be written to the store; empty while it can be written.
    opening: what is done before the store can be used; empty once it is open.
    changelog_id: of the changelog that its store was filled from; empty while the node does not follow it.
    copied_records: received from peers instead of the changelog, since the start.
    source_topic: what it folds. source_ends: end offset of each partition of it. source_starts: the first offset that it folds,
        likewise; empty for the whole log.
    """

    number: int
    stage: str
    changelog_topic: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)
    bad_records: int = 0
    copied_records: int = 0
    records: int = 0
    still_since: float | None = None
    write_error: str = ""
    opening: str = ""
    still_since_boot_s: float | None = None
    source_topic: str = ""
    source_ends: dict[int, int] = field(default_factory=dict)
    source_starts: dict[int, int] = field(default_factory=dict)
    changelog_id: str = ""

    def still_s(self) -> float:
        """Return for how many seconds events have waited and none was folded; 0 while the folds keep up."""
        return 0.0 if self.still_since is None else age_s(self.still_since, self.still_since_boot_s)


@dataclass(frozen=True)
class ModelState:
    """A read model as this node sees it.

    owned: partitions that the consumer group has assigned to this node.
    owners, standbys: partition -> URL of its owner, URLs of its standbys, in the latest routing table.
    source_topic: the topic that the read model declares, whose partitions the consumer group assigns.
    placement: where its records are served from. In redis, `partitions` of its versions are those that this node can read there.
    """

    name: str
    source_topic: str
    partition_count: int
    revision: int
    live: int | None
    versions: dict[int, VersionState] = field(default_factory=dict)
    owned: frozenset[int] = frozenset()
    owners: dict[int, str] = field(default_factory=dict)
    standbys: dict[int, tuple[str, ...]] = field(default_factory=dict)
    placement: Placement = Placement.PARTITIONED


@dataclass(frozen=True)
class NodeState:
    """The whole state.

    written_at: Unix time in seconds of its writing, every second while the materializer runs. boot_id, written_boot_s: the same by
        the boot clock; empty and None in the state of an earlier release.
    keys_missing: why the API keys are not known as they are now; empty if they are, or if callers need none.
    """

    node: str
    url: str
    written_at: float = 0.0
    is_kafka_reachable: bool = False
    waiting_for: str = ""
    nodes: dict[str, str] = field(default_factory=dict)  # URL -> name, of every member of the group
    models: dict[str, ModelState] = field(default_factory=dict)
    boot_id: str = ""
    written_boot_s: float | None = None
    keys_missing: str = ""

    def age_s(self) -> float:
        """Return how many seconds ago the materializer wrote the state; at least, if the machine has restarted since."""
        return age_s(self.written_at, self.written_boot_s)

    def written(self, now: Moment) -> "NodeState":
        """Return the state as it is written at this moment."""
        return replace(self, written_at=now.unix_s, boot_id=boot_id(), written_boot_s=now.boot_s)

    def without_partitions(self, of: tuple[str, int] | None = None) -> "NodeState":
        """Return the state without partitions of the version (model, number) `of`; None: of any version."""
        return replace(
            self, models={name: _without_partitions(model, of) for name, model in self.models.items()}
        )


def _without_partitions(model: ModelState, of: tuple[str, int] | None) -> ModelState:
    versions = {
        number: replace(version, partitions={}) if of in {None, (model.name, number)} else version
        for number, version in model.versions.items()
    }
    return replace(model, versions=versions)


_ADAPTER = TypeAdapter(NodeState)


def write(directory: Path, state: NodeState) -> None:
    """Replace the state file; raises OSError when the disk is full and the file cannot be overwritten either."""
    shared_file.write(directory / FILE_NAME, _ADAPTER.dump_json(state))


def read(directory: Path) -> NodeState | None:
    """Return the newest state; None when there is no readable state file.

    Of a state that was written before the machine started, only the routing is valid: what was in a store may be lost.
    """
    text = shared_file.read(directory / FILE_NAME)
    if text is None:
        return None
    try:
        state = _ADAPTER.validate_json(text)
    except ValidationError:
        return None
    if state.boot_id in {"", boot_id()}:
        return state
    return replace(state.without_partitions(), written_boot_s=0.0)


def watch_state(directory: Path) -> FileWatch[NodeState]:
    """Return a watch of the newest state."""
    return FileWatch(directory / FILE_NAME, partial(read, directory))
