"""Whether a table's job has anything to do, found out without Spark."""

from datetime import UTC, datetime

from include.declarations.event_table import AppendedTable
from include.declarations.read_model import ReadModel
from include.kafka.topic_state import TopicState, topic_state, unread_ends_of
from include.lake.tables import table_path
from include.lake.tagged_table import RECENT_COMMITS, TableCommit, TaggedTable, vacuum_is_due
from include.lake.tags import AppendTag, CommitTag, LakeTagT, TagReader
from include.position import Offsets
from include.settings import KafkaConnection, Settings
from include.versions.registry import VersionRegistry

Commits = tuple[TableCommit[LakeTagT], ...]


def has_pending_work(settings: Settings, model: ReadModel, now: datetime | None = None) -> bool:
    """Return whether a compaction of `lake/<model>` would change the table or is due to clean up.

    It has nothing to do if the table's newest commit has a tag of the live version, which covers the whole changelog and the whole
    source, and VACUUM is not due.

    Raises KafkaUnavailableError.
    """
    commits, tag = _newest(settings.lake_root, model.name, CommitTag.from_json)
    if tag is None:
        return True
    kafka = settings.kafka_connection
    with VersionRegistry(kafka) as registry:
        record = registry.read().get(model.name)
    live = None if record is None else record.live
    if live is None or (tag.version, tag.fold_revision) != (live.number, live.fold_revision):
        return True
    source_topic = model.reading(live.source_topic).source_topic
    changelog, source = topic_state(kafka, live.changelog_topic), topic_state(kafka, source_topic)
    if changelog is None or source is None or tag.topic_id != changelog.topic_id:
        return True
    return not (
        _is_read(kafka, live.changelog_topic, changelog, tag.changelog_offsets)
        and _is_read(kafka, source_topic, source, tag.complete_up_to)
    ) or _vacuum_is_due(settings.lake.retention_h, commits, now)


def has_records_to_append(settings: Settings, declared: AppendedTable, now: datetime | None = None) -> bool:
    """Return whether the job of an event table would change `lake/<name>` or is due to clean up.

    It has nothing to do without the topic, or if the table's newest commit covers the whole topic and VACUUM is not due.

    Raises KafkaUnavailableError.
    """
    kafka, name = settings.kafka_connection, declared.source_topic
    topic = topic_state(kafka, name)
    if topic is None:
        return False
    commits, tag = _newest(settings.lake_root, declared.name, AppendTag.from_json)
    if tag is None or (tag.source_topic, tag.topic_id) != (name, topic.topic_id):
        return True
    # Also if the table is ahead of the topic: the job reports that Kafka has lost records.
    if not topic.ends.covers(tag.offsets):
        return True
    return not _is_read(kafka, name, topic, tag.offsets) or _vacuum_is_due(
        settings.lake.retention_h, commits, now
    )


def _newest(
    lake_root: str, name: str, read_tag: TagReader[LakeTagT]
) -> tuple[Commits[LakeTagT], LakeTagT | None]:
    """Return a table's newest commits, and the tag of the newest one; no commits if there is no table."""
    table = TaggedTable.open(table_path(lake_root, name), read_tag)
    commits = () if table is None else table.history(RECENT_COMMITS)
    return commits, commits[0].tag if commits else None


def _is_read(kafka: KafkaConnection, topic: str, state: TopicState, offsets: Offsets) -> bool:
    return offsets.covers(unread_ends_of(kafka, topic, state.ends, offsets))


def _vacuum_is_due(retention_h: float, commits: Commits[LakeTagT], now: datetime | None) -> bool:
    return vacuum_is_due(commits, retention_h, now or datetime.now(UTC))
