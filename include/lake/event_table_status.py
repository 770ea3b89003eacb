"""The status of the event tables: size, months, history, and lag behind their topics. Read with delta-rs, without a JVM."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.declarations.event_table import MONTH_COLUMN, AppendedTable
from include.kafka.topic_state import ends_if_known, topic_state, unread_ends_of
from include.lake.append_tag import AppendTag
from include.lake.tables import table_path
from include.lake.vacuum_schedule import RECENT_COMMITS, TableCommit, vacuum_is_due
from include.position import Offsets
from include.settings import Settings


@dataclass(frozen=True)
class AppendCommit:
    """One commit of an event table; `tag` is None if Foldlake did not write it."""

    delta_version: int
    committed_at: datetime
    operation: str
    tag: AppendTag | None


@dataclass(frozen=True)
class EventTableStatus:
    """The status of one event table.

    records_behind: records of the topic that are not in the table yet; None if Kafka does not respond.
    months: month -> number of rows. unreadable, lost: see AppendTag. newest_age_s: age of Foldlake's newest commit.
    history: newest first.
    """

    event_table: str
    source_topic: str
    path: str
    rows: int
    files: int
    bytes: int
    delta_version: int
    months: dict[str, int]
    offsets: Offsets
    records_behind: int | None
    unreadable: int
    lost: int
    newest_age_s: float | None
    history: tuple[AppendCommit, ...]


def event_table_status(
    lake_root: str, bootstrap_servers: str | None, declared: AppendedTable, commits: int
) -> EventTableStatus | None:
    """Return the status of an event table, with its newest `commits` commits, or None if it does not exist yet.

    bootstrap_servers: None if Kafka is known not to respond.
    """
    path = table_path(lake_root, declared.name)
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        return None
    files = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    months: dict[str, int] = {}
    for month, rows in zip(files.get(f"partition.{MONTH_COLUMN}", ()), files["num_records"], strict=True):
        if rows:
            months[month] = months.get(month, 0) + rows
    history = append_history(table)
    newest = next((commit for commit in history if commit.tag is not None), None)
    tag = None if newest is None else newest.tag
    offsets = Offsets() if tag is None else tag.offsets
    ends = (
        None
        if bootstrap_servers is None
        else ends_if_known(bootstrap_servers, declared.source_topic, offsets)
    )
    return EventTableStatus(
        event_table=declared.name,
        source_topic=declared.source_topic,
        path=path,
        rows=sum(files["num_records"]),
        files=len(files["path"]),
        bytes=sum(files["size_bytes"]),
        delta_version=table.version(),
        months=dict(sorted(months.items())),
        offsets=offsets,
        records_behind=None if ends is None else offsets.events_until(ends),
        unreadable=0 if tag is None else tag.unreadable,
        lost=0 if tag is None else tag.lost,
        newest_age_s=None if newest is None else (datetime.now(UTC) - newest.committed_at).total_seconds(),
        history=history[:commits],
    )


def append_history(table: DeltaTable, limit: int | None = None) -> tuple[AppendCommit, ...]:
    """Return a table's commits, newest first."""
    return tuple(
        AppendCommit(
            delta_version=entry["version"],
            committed_at=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
            operation=entry["operation"],
            tag=AppendTag.from_json(entry.get("userMetadata")),
        )
        for entry in table.history(limit)
    )


def has_records_to_append(settings: Settings, declared: AppendedTable, now: datetime | None = None) -> bool:
    """Return whether the job of an event table would change `lake/<name>` or is due to clean up.

    It has nothing to do without the topic, or if the table's newest commit covers the whole topic and VACUUM is not due.

    Raises KafkaUnavailableError.
    """
    topic = topic_state(settings.kafka.bootstrap_servers, declared.source_topic)
    if topic is None:
        return False
    try:
        table = DeltaTable(table_path(settings.lake_root, declared.name))
    except TableNotFoundError:
        return True
    commits = append_history(table, RECENT_COMMITS)
    tag = commits[0].tag if commits else None
    if tag is None:
        return True
    # Also if the table is ahead of the topic: the job reports that Kafka has lost records.
    if (tag.source_topic, tag.topic_id) != (
        declared.source_topic,
        topic.topic_id,
    ) or not topic.ends.covers(tag.offsets):
        return True
    servers = settings.kafka.bootstrap_servers
    if not tag.offsets.covers(unread_ends_of(servers, declared.source_topic, topic.ends, tag.offsets)):
        return True
    recent = [TableCommit(commit.committed_at, commit.operation) for commit in commits]
    return vacuum_is_due(recent, settings.lake.retention_h, now or datetime.now(UTC))
