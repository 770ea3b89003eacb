"""Up to where an event table contains its topic, and whether more can be appended to it."""

import logging
from dataclasses import replace

from include.errors import FoldlakeError
from include.kafka.topic_state import TopicState
from include.lake.tags import RESTART, AppendTag
from spark_jobs.lake.event_rows import EventDeltaTable

LOG = logging.getLogger(__name__)


class ChangedTopicError(FoldlakeError):
    """The topic is not the one from which the table was appended to, or has lost its newest records."""


class UnknownOffsetsError(FoldlakeError):
    """The table has rows, but no commit in its history says up to where they contain the topic."""


def tag_to_append_from(table: EventDeltaTable, topic: TopicState) -> AppendTag:
    """Return the tag of the newest commit, or that of an empty table; raises UnknownOffsetsError for rows without offsets."""
    newest = table.newest_tag()
    if newest is None:
        name, source = table.name, table.declared.source_topic
        if table.has_rows():
            raise UnknownOffsetsError(
                f"{table.path} has rows, but no commit in its history has the offsets of {source} up to which it was appended to: another "
                "program wrote it, or removed its history. Nothing was appended. Hint: move it away, or remove it, and run "
                f"`./foldlake compact {name}`, which appends all events that are in the topic."
            )
        return AppendTag(name, source, topic.topic_id, start=topic.starts, offsets=topic.starts)
    if newest.overwritten_by:
        LOG.warning(
            "lake/%s was changed by another program (%s): it may lack events or contain others. Hint: remove %s and run "
            "`./foldlake compact %s`, which appends all events of the topic",
            table.name,
            newest.overwritten_by,
            table.path,
            table.name,
        )
    return newest.tag


def require_same_topic(table: EventDeltaTable, tag: AppendTag, topic: TopicState) -> None:
    """Raise ChangedTopicError if the topic is not the one that the table contains, or ends before what the table contains."""
    source = table.declared.source_topic
    hint = (
        f"Hint: move {table.path} away, or remove it, and run `./foldlake compact {table.name}`: it appends all events that are in "
        f"{source} to a new table."
    )
    if tag.source_topic != source:
        raise ChangedTopicError(
            f"lake/{table.name} has the events of {tag.source_topic}, but event table {table.name} reads {source}, so nothing was "
            f"appended. {hint}"
        )
    if tag.topic_id != topic.topic_id:
        raise ChangedTopicError(
            f"Topic {source} was deleted and created again since its events were appended to lake/{table.name}: its id is "
            f"{topic.topic_id}, and was {tag.topic_id}. Nothing was appended. {hint}"
        )
    ahead = [
        f"partition {p} ends at offset {topic.ends.of(p)}, and lake/{table.name} contains it up to {offset}"
        for p, offset in tag.offsets.items()
        if topic.ends.of(p) < offset
    ]
    if ahead:
        raise ChangedTopicError(
            f"Kafka has lost records of {source}: {'; '.join(ahead)}. New records at these offsets would be left out, so nothing was "
            f"appended. {hint}"
        )


def with_all_event_types(table: EventDeltaTable, tag: AppendTag, topic: TopicState) -> AppendTag:
    """Return the tag from which to append, after emptying the table if it lacks events of a type that is a row since the last run.

    A table whose first events the topic has deleted meanwhile is not emptied: it has the events of the new type from now on.
    """
    declared = frozenset(table.event_types)
    added = sorted(declared - frozenset(tag.event_types)) if tag.event_types else []
    if not added or not tag.other_types:
        return replace(tag, event_types=table.event_types)
    if any(topic.starts.of(partition) > offset for partition, offset in tag.start.items()):
        LOG.warning(
            "lake/%s has events of type %s only from now on: the topic has deleted the first events of the table, so it is not built again",
            table.name,
            " and ".join(added),
        )
        return replace(tag, event_types=table.event_types)
    LOG.info("lake/%s: appending all events again, for those of type %s", table.name, " and ".join(added))
    start = AppendTag(
        tag.table,
        tag.source_topic,
        tag.topic_id,
        start=topic.starts,
        offsets=topic.starts,
        operation=RESTART,
        event_types=table.event_types,
        generation=tag.generation + 1,
    )
    table.restart(start)
    return start
