"""Caches the schema ids of source topics, and looks up unknown ones."""

import logging
import re
from collections.abc import Collection
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, length, lit, substring

from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import HEADER_BYTES, MAGIC, header, split
from spark_jobs.folding.decode import UNKNOWN_SCHEMA_ID, SchemaIds
from spark_jobs.runtime.checkpoint import offsets_json

LOG = logging.getLogger(__name__)
# A query that stops at an unknown id looks up at most this many ids ahead of its checkpoint; further ones at its next stop.
MAX_HEADERS_AHEAD = 10_000
# As raised by the decoder.
NAMED_HEADER = re.compile(rf"{UNKNOWN_SCHEMA_ID}=([0-9A-F]{{{2 * HEADER_BYTES}}})(?![0-9A-F])")


class KnownSchemas(Protocol):
    """The schema ids of one source topic."""

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known so far."""

    def learn(self, headers: set[bytes]) -> None:
        """Look up the ids in these record headers."""


class FixedSchemas:
    """The schemas from the command line, instead of a registry; every other id is rejected."""

    def __init__(self, writers: dict[int, RecordSchema]) -> None:
        self.schema_ids = SchemaIds(writers, stop_at_unknown=False)

    def learn(self, headers: set[bytes]) -> None:
        """Do nothing: there is no registry."""


class RegistrySchemas:
    """The schema ids in the schema registry: initially those of the topic, then those that are looked up.

    The constructor and all methods raise RegistryUnavailableError when the registry does not answer. An id is rejected only
    if the registry answers that it does not exist.
    """

    def __init__(self, registry: SchemaRegistry, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._writers = registry.schema_ids(topic)
        self._rejected: set[int] = set()

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known so far."""
        return SchemaIds(dict(self._writers), frozenset(self._rejected), stop_at_unknown=True)

    def refresh(self) -> None:
        """Add the ids that have been registered for the topic since."""
        self._writers |= self._registry.schema_ids(self._topic)
        self._rejected -= self._writers.keys()

    def learn(self, headers: set[bytes]) -> None:
        """Fetch the schemas of the ids that are not known yet."""
        for schema_id in sorted(
            {split(found)[0] for found in headers} - self._writers.keys() - self._rejected
        ):
            schema = self._registry.schema_by_id(schema_id)
            if schema is None:
                LOG.warning(
                    "schema id %d is not in the registry: writing its records to the dead-letter topic",
                    schema_id,
                )
                self._rejected.add(schema_id)
            else:
                LOG.info("fetched schema id %d: %s", schema_id, schema.full_name)
                self._writers[schema_id] = schema


def named_headers(error: str) -> set[bytes]:
    """Return the headers of the unknown schema ids that an error of Spark names. It may name none.

    In real-time mode, an error is that of the first failed task, and its text does not always contain the cause.
    """
    return {bytes.fromhex(found) for found in NAMED_HEADER.findall(error)}


def headers_ahead(
    spark: SparkSession, bootstrap_servers: str, topic: str, checkpoint: str, known_ids: Collection[int]
) -> set[bytes]:
    """Return the distinct headers with an unknown schema id between a query's checkpoint and the end of its topic.

    Looking up all of their ids together stops the query once instead of once per unknown id. At most MAX_HEADERS_AHEAD are
    returned; the caller then knows these, and the next call returns others.
    """
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", offsets_json(spark, checkpoint) or "earliest")
        .load()
    )
    found = col("header")
    headers = records.select(substring(col("value"), 1, HEADER_BYTES).alias("header"))
    # Filtered before they are limited: any number of records without a schema id may be ahead of the one that is searched.
    unknown = headers.where(
        (length(found) == HEADER_BYTES)
        & (substring(found, 1, 1) == lit(bytes([MAGIC])))
        & ~found.isin([header(schema_id) for schema_id in known_ids])
    )
    return {bytes(row.header) for row in unknown.distinct().limit(MAX_HEADERS_AHEAD).collect()}
