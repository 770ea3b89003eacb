"""An emission's consumers' topic: which source topic its writer folds, what is written, and how a version takes it over."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from include.declarations.kinds.emission import Emission
from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords, written_tasks
from include.kafka.topics import partition_count
from include.position import Offsets
from include.stream.checkpoints import emission_query_name, writer_path, written_note_path
from spark_jobs.routing.topic_handover import IsDue, append_due, newer_than
from spark_jobs.routing.topic_switch import (
    NotRoutedError,
    TopicSwitch,
    consumed_events,
    emitted_offsets,
    lacking_offsets,
)
from spark_jobs.routing.written_outputs import WrittenOutputs
from spark_jobs.runtime.checkpoint import read_text, write_text
from spark_jobs.streaming.query_spec import StartRefusedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

# The number of the consumers' topic among those of the versions, in the names of locks and files; versions are numbered from 1.
CONSUMERS = 0


@dataclass(frozen=True)
class TopicOwner:
    """Who writes to the consumers' topic: a version that folds this source topic. change: a handover that has begun and is not complete."""

    source_topic: str
    change: TopicSwitch | None = None

    @property
    def next_source_topic(self) -> str:
        """The source topic once the handover that has begun is complete."""
        return self.source_topic if self.change is None else self.change.after

    def to_json(self) -> str:
        """Return the writer as JSON."""
        change = None if self.change is None else self.change.to_json()
        return json.dumps({"source_topic": self.source_topic, "change": change})

    @classmethod
    def from_json(cls, text: str) -> "TopicOwner":
        """Read a writer."""
        fields = json.loads(text)
        change = fields["change"]
        return cls(fields["source_topic"], None if change is None else TopicSwitch.from_json(change))


class PublishedTopic:
    """The consumers' topic of an emission. What changes it requires its lock."""

    def __init__(self, context: StreamContext, emission: Emission) -> None:
        self._context = context
        self._emission = emission
        self._partitions = emission.output_partitions(context.settings.topics)
        self._checkpoint = f"{context.settings.checkpoints}/{emission_query_name(emission.name, CONSUMERS)}"
        self._refused: tuple[TopicSwitch, str] | None = None

    def writer(self, source_topic: str) -> TopicOwner:
        """Return who writes to the topic; if nothing is written, a version that folds `source_topic`. Raises KafkaUnavailableError."""
        text = read_text(self._context.spark, writer_path(self._checkpoint))
        if text is not None:
            return TopicOwner.from_json(text)
        # Nothing was handed over to a version that folds another topic than the declared one, or by an earlier release.
        declared = self._declared_topic
        if source_topic == declared or self.written_tasks(self._emission.output_topic, declared) is None:
            return TopicOwner(source_topic)
        return TopicOwner(declared)

    def set_writer(self, writer: TopicOwner) -> None:
        """Record who writes to the topic."""
        write_text(self._context.spark, writer_path(self._checkpoint), writer.to_json())

    def written_tasks(self, topic: str, source_topic: str) -> int | None:
        """Return the number of shuffle tasks with which the emission has written to its consumers' or a version's topic; None: it has not."""
        if partition_count(self._context.admin, topic) is None:
            return None
        return written_tasks(
            self._context.consumer, topic, self._partitions, self._emission.name, source_topic
        )

    def outputs(self, records: WrittenRecords, committed: Callable[[], Offsets]) -> WrittenOutputs:
        """Return what is written to the topic from a source topic. The versions that fold it share the note."""
        noted = "" if records.source_topic == self._declared_topic else records.source_topic
        return WrittenOutputs(
            lambda: self._context.spark,
            self._context.consumer,
            written_note_path(self._checkpoint, noted),
            self._emission.output_topic,
            self._partitions,
            records,
            committed,
        )

    def append_newer(self, version: int, records: WrittenRecords) -> None:
        """Append what a version has emitted to its own topic and is newer than what is written from its source topic."""
        written = self.outputs(records, Offsets).read()
        self._append(version, records, newer_than(written))

    def complete(self, change: TopicSwitch) -> None:
        """Append what consumers lack of what the version has emitted to its own topic up to `change.ends`; may be killed and repeated.

        Raises StartRefusedError if the source topics are not routed, KafkaUnavailableError.
        """
        own = self._emission.version_topic(change.version)
        tasks = self.written_tasks(own, change.after)
        if tasks is not None:
            lacking = self._lacking(change)
            records = WrittenRecords(self._emission.name, change.after, tasks)
            outputs = self.outputs(records, Offsets)
            is_newer = newer_than(outputs.read())
            self.set_writer(TopicOwner(change.before, change))

            def is_due(pair: LanePartition, origin: OutputOrigin) -> bool:
                return (records.partition(pair.source), origin.offset) in lacking and is_newer(pair, origin)

            self._append(change.version, records, is_due)
        else:
            LOG.warning("v%d of %s has emitted nothing to %s", change.version, self._emission.read_model, own)
            outputs = self.outputs(WrittenRecords(self._emission.name, change.after), Offsets)
        outputs.complete_below(change.ends)
        self.set_writer(TopicOwner(change.after))
        LOG.info(
            "%s has records of %s instead of %s from now on",
            self._emission.output_topic,
            change.after,
            change.before,
        )

    def _lacking(self, change: TopicSwitch) -> set[tuple[int, int]]:
        """Return partition and offset of the events below `change.ends` of which consumers lack a record."""
        context, emission = self._context, self._emission
        if self._refused is not None and self._refused[0] == change:
            raise StartRefusedError(self._refused[1])
        before = WrittenRecords(emission.name, change.before)
        completed = self.outputs(before, Offsets).noted.committed
        partitions = partition_count(context.admin, change.before) or 0
        emitted = emitted_offsets(
            context.consumer, emission.output_topic, self._partitions, before, completed
        )
        try:
            events = consumed_events(context.consumer, change, partitions, completed, emitted)
            return lacking_offsets(context.consumer, change, events)
        except NotRoutedError as error:
            reason = (
                f"{emission.output_topic} cannot be handed over to v{change.version}, which folds {change.after} instead of "
                f"{change.before}: {error}. Roll back to a version that folds {change.before}"
            )
            # What a topic has does not change: a refused query, which is tried again every few seconds, does not read it again.
            self._refused = change, reason
            raise StartRefusedError(reason) from error

    def _append(self, version: int, records: WrittenRecords, is_due: IsDue) -> None:
        own = self._emission.version_topic(version)
        if partition_count(self._context.admin, own) is None:
            return
        appended = append_due(
            self._context.settings.kafka_connection,
            self._context.consumer,
            own,
            self._emission.output_topic,
            self._partitions,
            records,
            is_due,
        )
        LOG.info("%d records of %s appended to %s", appended, own, self._emission.output_topic)

    @property
    def _declared_topic(self) -> str:
        return self._context.models[self._emission.read_model].declared_topic
