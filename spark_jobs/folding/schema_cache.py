"""Caches the schema ids of source topics, and looks up unknown ones."""

import logging
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, substring

from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import HEADER_BYTES, MAGIC, split
from spark_jobs.folding.decode import SchemaIds
from spark_jobs.runtime.checkpoint import offsets_json

LOG = logging.getLogger(__name__)
# A query that stops at an unknown id looks up at most this many ids ahead of its checkpoint; further ones at its next stop.
MAX_HEADERS_AHEAD = 10_000


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
            {split(header)[0] for header in headers} - self._writers.keys() - self._rejected
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


def headers_ahead(spark: SparkSession, bootstrap_servers: str, topic: str, checkpoint: str) -> set[bytes]:
    """Return the distinct record headers between a query's checkpoint and the end of its topic.

    Looking up all of their ids together stops the query once instead of once per unknown id.
    """
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", offsets_json(spark, checkpoint) or "earliest")
        .load()
    )
    header = substring(col("value"), 1, HEADER_BYTES).alias("header")
    rows = records.select(header).distinct().limit(MAX_HEADERS_AHEAD).collect()
    found = {bytes(row.header) for row in rows if row.header is not None}
    return {h for h in found if len(h) == HEADER_BYTES and h[0] == MAGIC}
