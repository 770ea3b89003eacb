"""Compares an event table with its topic: the log is read again, and each record must be a row or not as the table has it."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer
from deltalake import DeltaTable

from include.declarations.event_table import OFFSET_COLUMN, PARTITION_COLUMN, AppendedTable
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.logical_types import compare
from include.kafka.schema_registry import JOB_PATIENCE_S, SchemaRegistry
from include.kafka.topic_state import topic_state, unread_ends_of
from include.kafka.wire_format import split
from include.lake.event_table_check import opened
from include.position import Offsets
from include.settings import Settings

Numbers = npt.NDArray[np.int64]
NONE: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class LogComparison:
    """What the log and an event table do not have in common.

    compared: events of the table's types in the log, up to where the table contains it. missing: of these, those that are no rows,
    without as many as the table counts as unreadable. surplus: rows whose record in the log is of no such type, or does not exist.
    behind: records of the topic after what the table contains. other_topic: whether the topic was created again since.
    """

    compared: int = 0
    missing: int = 0
    surplus: int = 0
    behind: int = 0
    other_topic: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the table contains the log up to its offsets, and nothing else."""
        return not (self.missing or self.surplus or self.other_topic)

    def __str__(self) -> str:
        """Return the result in one line."""
        if self.other_topic:
            return "the topic was deleted and created again since its events were appended"
        found = (
            (self.missing, f"{self.missing:,} events of the log are no rows"),
            (self.surplus, f"{self.surplus:,} rows are no events of the log"),
        )
        faults = "; ".join(text for count, text in found if count)
        return f"{faults or 'as in the log'}, {self.compared:,} events compared, {self.behind:,} records not appended yet"


def compare_with_log(settings: Settings, declared: AppendedTable) -> LogComparison:
    """Compare an event table with its topic. Reads the whole topic, without decoding it, and two columns of the table into memory.

    Rows of records that the topic's retention has deleted are not compared.

    Raises EventTableMissingError when nothing has been appended to it yet, KafkaUnavailableError.
    """
    table, tag = opened(settings.lake_root, declared)
    topic = topic_state(settings.kafka.bootstrap_servers, declared.source_topic)
    if topic is None or topic.topic_id != tag.topic_id:
        return LogComparison(other_topic=True)
    servers = settings.kafka.bootstrap_servers
    unread = unread_ends_of(servers, declared.source_topic, topic.ends, tag.offsets)
    in_log = _events_in_log(settings, declared, tag.offsets)
    in_table = _rows(table, topic.starts)
    missing = surplus = 0
    for partition in in_log.keys() | in_table.keys():
        log, rows = in_log.get(partition, NONE), in_table.get(partition, NONE)
        missing += len(np.setdiff1d(log, rows))
        surplus += len(np.setdiff1d(rows, log))
    return LogComparison(
        compared=sum(map(len, in_log.values())),
        missing=max(0, missing - tag.unreadable),
        surplus=surplus,
        behind=tag.offsets.events_until(unread),
    )


def _events_in_log(settings: Settings, declared: AppendedTable, until: Offsets) -> dict[int, Numbers]:
    """Return the offsets of the events of a table's types in each partition of its topic, below these."""
    registry = SchemaRegistry(settings.registry.url, patience_s=JOB_PATIENCE_S)
    readers = {reader.name: reader for reader in declared.events.readers}
    is_row: dict[int, bool] = {}

    def is_event(value: bytes | None) -> bool:
        try:
            schema_id, _ = split(value or b"")
        except ValueError:
            return False
        if schema_id not in is_row:
            schema = registry.schema_by_id(schema_id)
            reader = None if schema is None else readers.get(schema.name)
            # An event of a schema that cannot be read is a dead letter.
            is_row[schema_id] = (
                schema is not None and reader is not None and compare(schema, reader).problem is None
            )
        return is_row[schema_id]

    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        return {
            partition: _offsets(consumer, declared.source_topic, partition, end, is_event)
            for partition, end in until.items()
        }
    finally:
        consumer.close()


def _offsets(
    consumer: Consumer, topic: str, partition: int, end: int, is_event: Callable[[bytes | None], bool]
) -> Numbers:
    found = array("q")
    for message in read_tail(consumer, topic, partition):
        offset = message.offset()
        if offset is None or offset >= end:
            break
        if is_event(message.value()):
            found.append(offset)
    return np.frombuffer(found, dtype=np.int64) if found else NONE


def _rows(table: DeltaTable, starts: Offsets) -> dict[int, Numbers]:
    """Return the offsets of the rows of each partition, from these on."""
    rows = table.to_pyarrow_table(columns=[PARTITION_COLUMN, OFFSET_COLUMN])
    partitions, offsets = (rows[name].to_numpy() for name in (PARTITION_COLUMN, OFFSET_COLUMN))
    found = ((int(partition), offsets[partitions == partition]) for partition in np.unique(partitions))
    return {partition: rows[rows >= starts.of(partition)] for partition, rows in found}
