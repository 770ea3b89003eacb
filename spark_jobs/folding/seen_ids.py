"""The schema ids in a topic's records, which must be looked up before the records are decoded."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, length, lit, substring

from include.errors import KafkaUnavailableError
from include.kafka.topic_state import topic_state
from include.kafka.wire_format import HEADER_BYTES, MAGIC, split
from include.position import Offsets
from spark_jobs.folding.topic_records import topic_records


@dataclass(frozen=True)
class _Seen:
    """The ids in all records below these offsets."""

    until: Offsets
    ids: frozenset[int]


# By the servers and Kafka's id of the topic: records do not change, so a process that runs several jobs reads each of them once.
_seen: dict[tuple[str, str], _Seen] = {}


def schema_ids_in(
    spark: SparkSession, bootstrap_servers: str, topic: str, until: Offsets, since: Offsets | None = None
) -> set[int]:
    """Return the schema ids in a topic's records from the first one, or `since`, up to these end offsets; it may return others too.

    Raises KafkaUnavailableError when the broker does not answer or the topic does not exist.
    """
    state = topic_state(bootstrap_servers, topic)
    if state is None:
        raise KafkaUnavailableError(f"Topic {topic} does not exist.")
    place = bootstrap_servers, state.topic_id
    seen = _seen.get(place, _Seen(Offsets(), frozenset()))
    first = since or Offsets()
    if seen.until.merge(first).covers(until):
        return set(seen.ids)
    start = seen.until.merge(first)
    # Spark's "earliest" is right where retention has deleted the first records.
    found = _ids_in(spark, bootstrap_servers, topic, until, start if any(start.values()) else None)
    ids = seen.ids | found
    if seen.until.covers(first):
        _seen[place] = _Seen(seen.until.merge(until), ids)
    return set(ids)


def _ids_in(
    spark: SparkSession, bootstrap_servers: str, topic: str, until: Offsets, since: Offsets | None
) -> frozenset[int]:
    found = substring(col("value"), 1, HEADER_BYTES)
    headers = (
        topic_records(spark, bootstrap_servers, topic, until, since)
        .where((length(found) == HEADER_BYTES) & (substring(found, 1, 1) == lit(bytes([MAGIC]))))
        .select(found.alias("header"))
        .distinct()
        .collect()
    )
    return frozenset(split(bytes(row.header))[0] for row in headers)
