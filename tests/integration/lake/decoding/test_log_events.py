"""Events are read from the log without Spark as Spark reads them: of any schemas, within transactions, of a part of the log, of one key."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import murmur2
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import NullType

from include.declarations.event_types.event_columns import EVENT_TYPE, KEY, OFFSET, PARTITION, type_column
from include.declarations.read_model import ReadModel
from include.kafka.wire_format import header
from include.position import Offsets
from include.replay.log_events import event_batches, event_schema
from include.settings import Settings
from spark_jobs.folding.decode import good_events
from spark_jobs.folding.replay import IdsOf, decoded_records, source_ends
from tests.support.avro.both_decoders import comparable, named, payloads_of
from tests.support.avro.schemas import generated_cases
from tests.support.faults.transactions import TransactionalWriter
from tests.support.stream_events import BALANCE
from tests.support.stream_process import EventSource, make_topics

TOPIC = "events-without-spark"
SCHEMAS, KEYS = 20, 7
# (partition, offset) of an event -> its key, type and fields.
Events = dict[tuple[int, int], tuple[str, str, Any]]


@dataclass(frozen=True)
class Log:
    """A topic with records of many schemas, and where it ends."""

    settings: Settings
    model: ReadModel
    until: Offsets

    def batches(self, since: Offsets | None = None, **chosen: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - arguments of event_batches
        """Return the events up to the end."""
        return event_batches(self.settings, self.model, since, self.until, **chosen)


@pytest.fixture(scope="module")
def log(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder: Path = tmp_path_factory.mktemp("generated")
    make_topics(settings, TOPIC)
    source, cases, ids = EventSource(settings, TOPIC), generated_cases(SCHEMAS), []
    for number, case in enumerate(cases):
        reader = named(case.reader, number)
        (folder / f"{reader.name}.avsc").write_text(reader.text)
        # Half of the writers are of another subject, whose ids are looked up when a record has them.
        topic = f"another-topic-{number}" if number % 2 else TOPIC
        ids.append(source.registry.register(topic, named(case.writer, number)))
    records = [
        (f"key {count % KEYS}".encode(), header(ids[number]) + value)
        for count, (number, value) in enumerate(payloads_of(cases))
    ]
    for key, value in records:
        source.append_raw(key, value)
    for strange_key, strange in (
        (None, records[0][1]),
        (b"key 0", None),
        (b"key 0", b"\x00"),
        (b"key 0", header(900_003)),
    ):
        source.append_raw(strange_key, strange)
    source.flush()
    writer = TransactionalWriter(settings, TOPIC)
    writer.commit(records)
    # The end of each partition is that of a transaction, and behind it there are no events.
    writer.abort(records)
    types = tuple(named(case.reader, number).name for number, case in enumerate(cases))
    model = replace(BALANCE, source_topic=TOPIC, event_types=types, schema_folders=(folder,))
    return Log(settings, model, source_ends(settings.kafka_connection, TOPIC))


@pytest.fixture(scope="module")
def decoded(log: Log, lake_spark: SparkSession) -> DataFrame:
    return good_events(
        decoded_records(lake_spark, log.settings, log.model.events, log.until, ids_of=IdsOf.LOG)
    )


@pytest.fixture(scope="module")
def by_spark(decoded: DataFrame) -> Events:
    return rows_of(decoded.withColumn(KEY, col(KEY).cast("string")))


def rows_of(events: DataFrame) -> Events:
    return {
        (row[PARTITION], row[OFFSET]): (
            row[KEY],
            row[EVENT_TYPE],
            comparable(row[type_column(row[EVENT_TYPE])]),
        )
        for row in events.collect()
    }


def rows_of_batches(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Events:
    table = pa.Table.from_batches(batches, schema)
    table.validate(full=True)
    return rows_of(spark.createDataFrame(table))


def test_events_equal_those_of_spark(log: Log, lake_spark: SparkSession, by_spark: Events) -> None:
    read: list[int] = []

    batches = list(log.batches(on_read=read.append))

    assert rows_of_batches(lake_spark, batches, event_schema(log.model)) == by_spark
    assert len(by_spark) > SCHEMAS * 6
    # Those outside of a transaction and those of the committed one, without those of the aborted one.
    written = 2 * SCHEMAS * 12
    assert sum(read) == written + 4


def test_columns_have_the_types_of_spark(log: Log, decoded: DataFrame) -> None:
    schema = event_schema(log.model)

    # The column of an event type without a usable schema has no type.
    by_spark = {
        one.name: to_arrow_type(one.dataType)
        for one in decoded.schema
        if one.name.startswith("event:") and one.dataType != NullType()
    }

    assert {name: schema.field(name).type for name in by_spark} == by_spark
    assert len(by_spark) > SCHEMAS / 2


def test_a_part_of_the_log_has_its_events_in_order(
    log: Log, lake_spark: SparkSession, by_spark: Events
) -> None:
    since = Offsets({partition: end // 3 for partition, end in log.until.items()})
    until = Offsets({partition: end // 2 for partition, end in log.until.items()})
    chosen = sorted(log.until)[1:]

    batches = list(event_batches(log.settings, log.model, since, until, partitions=chosen))

    expected = {
        (partition, offset): event
        for (partition, offset), event in by_spark.items()
        if partition in chosen and since.of(partition) <= offset < until.of(partition)
    }
    assert expected
    assert rows_of_batches(lake_spark, batches, event_schema(log.model)) == expected
    places = [
        (row[PARTITION], row[OFFSET])
        for batch in batches
        for row in batch.select([PARTITION, OFFSET]).to_pylist()
    ]
    for partition in chosen:
        offsets = [offset for found, offset in places if found == partition]
        assert offsets == sorted(offsets)
    # Below the start of its version, a model reads nothing.
    started = log.model.reading(TOPIC, since)
    assert list(event_batches(log.settings, started, None, until, partitions=[0])) == list(
        event_batches(log.settings, log.model, since, until, partitions=[0])
    )


def test_only_the_records_of_a_key_are_decoded(log: Log, lake_spark: SparkSession, by_spark: Events) -> None:
    key = b"key 3"
    partition = murmur2(key, len(log.until))

    batches = list(log.batches(partitions=[partition], record_key=key))

    expected = {place: event for place, event in by_spark.items() if event[0] == key.decode()}
    assert expected
    assert rows_of_batches(lake_spark, batches, event_schema(log.model)) == expected


def test_nothing_is_read_of_an_empty_range(log: Log) -> None:
    assert list(log.batches(since=log.until)) == []
