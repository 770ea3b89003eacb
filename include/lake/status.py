"""The status of the lake's tables: size, history and lag behind their sources. Read with delta-rs, without a JVM."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic

from include.declarations.event_table import MONTH_COLUMN, AppendedTable
from include.declarations.read_model import ReadModel
from include.kafka.topic_state import ends_if_known
from include.lake.tables import table_path
from include.lake.tagged_table import NEWEST_COMMITS, TableCommit, TaggedTable
from include.lake.tags import AppendTag, CommitTag, LakeTag, LakeTagT, read_lake_tag
from include.position import Offsets
from include.settings import KafkaConnection
from include.versions.registry import live_version_if_known, source_ends_if_known


@dataclass(frozen=True)
class TableStatus(Generic[LakeTagT]):
    """The status of one table.

    rows: None if the table has files without statistics. tag: of Foldlake's newest commit; None if there is none.
    newest_age_s: age of that commit. history: newest first.
    behind: events or records of the source after `complete_up_to`; None if Kafka does not respond, or was not read.
    """

    name: str
    path: str
    rows: int | None
    files: int
    bytes: int
    delta_version: int
    tag: LakeTagT | None
    newest_age_s: float | None
    history: tuple[TableCommit[LakeTagT], ...]
    behind: int | None = None

    @property
    def version(self) -> int | None:
        """The read model's version that the table contains; None before the first promotion, and for an event table."""
        return self.tag.version if isinstance(self.tag, CommitTag) else None

    @property
    def complete_up_to(self) -> Offsets:
        """Partition of the source -> offset below which every event is in the table."""
        return Offsets() if self.tag is None else self.tag.complete_up_to

    def behind_ends(self, ends: Offsets | None) -> "TableStatus[LakeTagT]":
        """Return the status with the lag behind the source's end offsets; None: they are unknown."""
        return replace(self, behind=None if ends is None else self.complete_up_to.events_until(ends))

    def as_json(self) -> dict[str, Any]:
        """Return the figures that `./foldlake lake --json` prints for every table."""
        return {
            "path": self.path,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "delta_version": self.delta_version,
            "newest_age_s": self.newest_age_s,
            "history": [asdict(commit) for commit in self.history],
        }


@dataclass(frozen=True)
class ReadModelStatus:
    """The status of a read model's table.

    live_version: the number of the version that answers lookups; None if there is none, or Kafka does not respond.
    """

    table: TableStatus[CommitTag]
    live_version: int | None

    @property
    def follows_live(self) -> bool:
        """Whether the table contains the live version, as far as is known."""
        return self.live_version is None or self.table.version == self.live_version

    def as_json(self) -> dict[str, Any]:
        """Return the fields that `./foldlake lake --json` prints."""
        return {
            "read_model": self.table.name,
            **self.table.as_json(),
            "version": self.table.version,
            "live_version": self.live_version,
            "complete_up_to": self.table.complete_up_to,
            "events_behind": self.table.behind,
        }


@dataclass(frozen=True)
class EventTableStatus:
    """The status of an event table. months: month -> number of rows."""

    table: TableStatus[AppendTag]
    source_topic: str
    months: dict[str, int]

    @property
    def unreadable(self) -> int:
        """The number of records of the topic that cannot be decoded."""
        return 0 if self.table.tag is None else self.table.tag.unreadable

    @property
    def lost(self) -> int:
        """The number of records that the topic deleted before they were appended."""
        return 0 if self.table.tag is None else self.table.tag.lost

    def as_json(self) -> dict[str, Any]:
        """Return the fields that `./foldlake lake --json` prints."""
        return {
            "event_table": self.table.name,
            "source_topic": self.source_topic,
            **self.table.as_json(),
            "months": self.months,
            "offsets": self.table.complete_up_to,
            "records_behind": self.table.behind,
            "unreadable": self.unreadable,
            "lost": self.lost,
        }


def read_model_status(
    lake_root: str, kafka: KafkaConnection | None, model: ReadModel, commits: int
) -> ReadModelStatus | None:
    """Return the status of a read model's table, with its newest `commits` commits, or None if it does not exist yet.

    kafka: None if Kafka is known not to respond.
    """
    opened = TaggedTable.open(table_path(lake_root, model.name), CommitTag.from_json)
    if opened is None:
        return None
    status = _status(opened, lake_root, model.name, commits)
    if kafka is None:
        return ReadModelStatus(status, None)
    live = live_version_if_known(kafka, model.name)
    ends = source_ends_if_known(kafka, model, status.version, status.complete_up_to)
    return ReadModelStatus(status.behind_ends(ends), None if live is None else live.number)


def event_table_status(
    lake_root: str, kafka: KafkaConnection | None, declared: AppendedTable, commits: int
) -> EventTableStatus | None:
    """Return the status of an event table, with its newest `commits` commits, or None if it does not exist yet.

    kafka: None if Kafka is known not to respond.
    """
    opened = TaggedTable.open(table_path(lake_root, declared.name), AppendTag.from_json)
    if opened is None:
        return None
    status = _status(opened, lake_root, declared.name, commits)
    if kafka is not None:
        status = status.behind_ends(ends_if_known(kafka, declared.source_topic, status.complete_up_to))
    return EventTableStatus(status, declared.source_topic, _months(opened))


def table_summary(lake_root: str, name: str) -> TableStatus[LakeTag] | None:
    """Return the status of a read model's table or an event table without its lag; None if it does not exist yet.

    Of the history, only the newest commits are read.
    """
    path = table_path(lake_root, name)
    opened: TaggedTable[LakeTag] | None = TaggedTable.open(path, read_lake_tag)
    return None if opened is None else _status(opened, lake_root, name, NEWEST_COMMITS, NEWEST_COMMITS)


def _status(
    opened: TaggedTable[LakeTagT], lake_root: str, name: str, commits: int, read: int | None = None
) -> TableStatus[LakeTagT]:
    """Return the status without the lag. commits: how many to show. read: how many to search for a tag; None stands for all."""
    files, history = opened.files, opened.history(read)
    rows = files["num_records"]
    newest = next((commit for commit in history if commit.tag is not None), None)
    return TableStatus(
        name=name,
        path=table_path(lake_root, name),
        rows=None if None in rows else sum(rows),
        files=len(rows),
        bytes=sum(files["size_bytes"]),
        delta_version=opened.delta.version(),
        tag=None if newest is None else newest.tag,
        newest_age_s=None if newest is None else (datetime.now(UTC) - newest.committed_at).total_seconds(),
        history=history[:commits],
    )


def _months(opened: TaggedTable[AppendTag]) -> dict[str, int]:
    months: Counter[str] = Counter()
    files = opened.files
    for month, rows in zip(files.get(f"partition.{MONTH_COLUMN}", ()), files["num_records"], strict=True):
        months[month] += rows or 0
    return {month: rows for month, rows in sorted(months.items()) if rows}
