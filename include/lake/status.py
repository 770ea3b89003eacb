"""The status of the lake's tables: size, history and lag behind the events. Read with delta-rs, without a JVM."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.declarations.read_model import ReadModel
from include.lake.append_tag import AppendTag
from include.lake.tables import CommitTag, table_path
from include.position import Offsets
from include.versions.source_ends import live_version_if_known, source_ends_if_known

# Among so many commits there is one of Foldlake's: each job writes at most a few.
SUMMARY_COMMITS = 20


@dataclass(frozen=True)
class LakeCommit:
    """One commit of a table; `tag` is None if Foldlake did not write it."""

    delta_version: int
    committed_at: datetime
    operation: str
    tag: CommitTag | None


@dataclass(frozen=True)
class LakeStatus:
    """The status of one table.

    version: the read model's version that the table contains; None before the first promotion.
    live_version: the number of the version that answers lookups; None if there is none, or Kafka does not respond.
    events_behind: events of the source after `complete_up_to`; None if Kafka does not respond.
    newest_age_s: age of Foldlake's newest commit.
    history: newest first.
    """

    read_model: str
    path: str
    rows: int
    files: int
    bytes: int
    delta_version: int
    version: int | None
    live_version: int | None
    complete_up_to: Offsets
    events_behind: int | None
    newest_age_s: float | None
    history: tuple[LakeCommit, ...]

    @property
    def follows_live(self) -> bool:
        """Whether the table contains the live version, as far as is known."""
        return self.live_version is None or self.version == self.live_version


def lake_status(
    lake_root: str, bootstrap_servers: str | None, model: ReadModel, commits: int
) -> LakeStatus | None:
    """Return the status of a read model's table, with its newest `commits` commits, or None if it does not exist yet.

    bootstrap_servers: None if Kafka is known not to respond.
    """
    path = table_path(lake_root, model.name)
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        return None
    files = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    history = tuple(map(_commit, table.history()))
    newest = next((commit for commit in history if commit.tag is not None), None)
    tag = None if newest is None else newest.tag
    complete_up_to = Offsets() if tag is None else tag.complete_up_to
    live = None if bootstrap_servers is None else live_version_if_known(bootstrap_servers, model.name)
    return LakeStatus(
        read_model=model.name,
        path=path,
        rows=sum(files["num_records"]),
        files=len(files["path"]),
        bytes=sum(files["size_bytes"]),
        delta_version=table.version(),
        version=None if tag is None else tag.version,
        live_version=None if live is None else live.number,
        complete_up_to=complete_up_to,
        events_behind=_events_behind(bootstrap_servers, model, tag),
        newest_age_s=None if newest is None else (datetime.now(UTC) - newest.committed_at).total_seconds(),
        history=history[:commits],
    )


@dataclass(frozen=True)
class TableSummary:
    """The size of a table, and how old it is: of an event table, `version` is None.

    rows: None if the table has files without statistics. newest_age_s: age of Foldlake's newest commit among the last ones; None if
    there is none.
    """

    name: str
    rows: int | None
    bytes: int
    delta_version: int
    version: int | None
    complete_up_to: Offsets
    newest_age_s: float | None


def table_summary(lake_root: str, name: str) -> TableSummary | None:
    """Return the summary of a read model's table or an event table, without asking Kafka; None if it does not exist yet."""
    try:
        table = DeltaTable(table_path(lake_root, name))
    except TableNotFoundError:
        return None
    files = table.get_add_actions(flatten=True)
    rows = files.column("num_records").to_pylist()
    for entry in table.history(SUMMARY_COMMITS):
        commit = _commit(entry)
        appended = AppendTag.from_json(entry.get("userMetadata"))
        if commit.tag is not None or appended is not None:
            age_s = (datetime.now(UTC) - commit.committed_at).total_seconds()
            break
    else:
        commit, appended, age_s = None, None, None
    tag = None if commit is None else commit.tag
    complete_up_to = tag.complete_up_to if tag else appended.offsets if appended else Offsets()
    return TableSummary(
        name=name,
        rows=None if None in rows else sum(rows),
        bytes=sum(files.column("size_bytes").to_pylist()),
        delta_version=table.version(),
        version=None if tag is None else tag.version,
        complete_up_to=complete_up_to,
        newest_age_s=age_s,
    )


def _commit(entry: dict[str, Any]) -> LakeCommit:
    return LakeCommit(
        delta_version=entry["version"],
        committed_at=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
        operation=entry["operation"],
        tag=CommitTag.from_json(entry.get("userMetadata")),
    )


def _events_behind(bootstrap_servers: str | None, model: ReadModel, tag: CommitTag | None) -> int | None:
    if bootstrap_servers is None:
        return None
    complete_up_to = Offsets() if tag is None else tag.complete_up_to
    ends = source_ends_if_known(
        bootstrap_servers, model, None if tag is None else tag.version, complete_up_to
    )
    if ends is None:
        return None
    return complete_up_to.events_until(ends)
