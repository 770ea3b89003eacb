"""Whether there is anything for a compaction to do, found out without Spark."""

from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.declarations.read_model import ReadModel
from include.kafka.topic_state import TopicState, topic_state, unread_ends_of
from include.lake.tables import CommitTag, table_path
from include.lake.vacuum_schedule import RECENT_COMMITS, TableCommit, vacuum_is_due
from include.position import Offsets
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version


def has_pending_work(settings: Settings, model: ReadModel, now: datetime | None = None) -> bool:
    """Return whether a compaction of `lake/<model>` would change the table or is due to clean up.

    It has nothing to do if the table's newest commit has a tag of the live version, which covers the whole changelog and the whole
    source, and VACUUM is not due.

    Raises KafkaUnavailableError.
    """
    try:
        table = DeltaTable(table_path(settings.lake_root, model.name))
    except TableNotFoundError:
        return True
    commits = table.history(RECENT_COMMITS)
    tag = CommitTag.from_json(commits[0].get("userMetadata")) if commits else None
    if tag is None:
        return True
    servers = settings.kafka.bootstrap_servers
    with VersionRegistry(servers) as registry:
        record = registry.read().get(model.name)
    live = None if record is None else record.live
    if live is None or not _is_of(tag, live):
        return True
    source_topic = model.reading(live.source_topic).source_topic
    changelog, source = topic_state(servers, live.changelog_topic), topic_state(servers, source_topic)
    if changelog is None or source is None or tag.topic_id != changelog.topic_id:
        return True
    read = (
        (live.changelog_topic, changelog, tag.changelog_offsets),
        (source_topic, source, tag.complete_up_to),
    )
    if not all(_is_read(servers, topic, state, offsets) for topic, state, offsets in read):
        return True
    return vacuum_is_due(
        [_table_commit(commit) for commit in commits], settings.lake.retention_h, now or datetime.now(UTC)
    )


def _is_of(tag: CommitTag, version: Version) -> bool:
    return (tag.version, tag.fold_revision) == (version.number, version.fold_revision)


def _is_read(bootstrap_servers: str, topic: str, state: TopicState, offsets: Offsets) -> bool:
    return offsets.covers(unread_ends_of(bootstrap_servers, topic, state.ends, offsets))


def _table_commit(entry: dict[str, Any]) -> TableCommit:
    return TableCommit(datetime.fromtimestamp(entry["timestamp"] / 1000, UTC), str(entry["operation"]))
