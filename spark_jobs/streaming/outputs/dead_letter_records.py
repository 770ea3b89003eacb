"""The records of a dead-letter topic, as native columns: a bad record unchanged, or a reference to one that is too large."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, coalesce, col, length, lit, sha2, struct, when

from include.kafka.dead_letters import (
    FAILURE_HEADER,
    KEY_BYTES_HEADER,
    KEY_SHA256_HEADER,
    REASON_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_TOPIC_HEADER,
    VALUE_BYTES_HEADER,
    VALUE_SHA256_HEADER,
)
from include.kafka.wire_format import MAX_KEY_BYTES
from spark_jobs.folding.decode import FAILURE

# The default of the producer's `max.request.size`, to which it compares the size of a batch with one record.
PRODUCER_MAX_BYTES = 1_048_576
# An upper bound of what a batch contains besides key and value of its only record: 61 bytes of the batch, 21 of the record, and
# the headers, with at most 5 bytes for each length, 64 for a reason, and 30 for partition and offset.
BATCH_BYTES = 61 + 21
LENGTH_BYTES = 5
REASON_BYTES = 64
NUMBER_BYTES = 30
# Of the header that names what fails, without its text.
FAILURE_BYTES = 2 * LENGTH_BYTES + len(FAILURE_HEADER)


def dead_letter_records(source_topic: str, records: DataFrame, max_batch_bytes: int) -> DataFrame:
    """Return bad records as Kafka records: key and value unchanged, with the reason, what fails, and the origin as text headers.

    A record that is too large for the topic with these headers is replaced by a reference: no value, no key of more than
    MAX_KEY_BYTES, and their sizes and SHA-256 in further headers. The source topic has the record itself.

    max_batch_bytes: the topic's `max.message.bytes`.
    """
    origin = {
        REASON_HEADER: col("reason"),
        SOURCE_TOPIC_HEADER: lit(source_topic),
        SOURCE_PARTITION_HEADER: col("partition").cast("string"),
        SOURCE_OFFSET_HEADER: col("offset").cast("string"),
    }
    failure = {FAILURE_HEADER: col(FAILURE)}
    named = when(col(FAILURE).isNotNull(), length(col(FAILURE).cast("binary")) + lit(FAILURE_BYTES))
    fits = _size("key") + _size("value") + coalesce(named, lit(0)) <= lit(
        max_payload_bytes(source_topic, max_batch_bytes)
    )
    return records.select(
        when(fits | (_size("key") <= MAX_KEY_BYTES), col("key")).alias("key"),
        when(fits, col("value")).alias("value"),
        "partition",
        when(fits & named.isNull(), _headers(origin))
        .when(fits, _headers(origin | failure))
        .when(named.isNull(), _headers(origin | _digests()))
        .otherwise(_headers(origin | failure | _digests()))
        .alias("headers"),
    )


def max_payload_bytes(source_topic: str, max_batch_bytes: int) -> int:
    """Return how many bytes key and value may have together, so that the producer and the topic accept the dead letter."""
    names = (REASON_HEADER, SOURCE_TOPIC_HEADER, SOURCE_PARTITION_HEADER, SOURCE_OFFSET_HEADER)
    lengths = LENGTH_BYTES * (3 + 2 * len(names))
    headers = sum(map(len, names)) + REASON_BYTES + len(source_topic.encode()) + NUMBER_BYTES
    return min(max_batch_bytes, PRODUCER_MAX_BYTES) - BATCH_BYTES - lengths - headers


def _digests() -> dict[str, Column]:
    """Return the further headers of a reference; empty for a key or value that is null."""
    return {
        KEY_BYTES_HEADER: length("key").cast("string"),
        KEY_SHA256_HEADER: sha2(col("key"), 256),
        VALUE_BYTES_HEADER: length("value").cast("string"),
        VALUE_SHA256_HEADER: sha2(col("value"), 256),
    }


def _headers(texts: Mapping[str, Column]) -> Column:
    return array(
        *(
            struct(lit(name).alias("key"), coalesce(text, lit("")).cast("binary").alias("value"))
            for name, text in texts.items()
        )
    )


def _size(column: str) -> Column:
    return coalesce(length(column), lit(0))
