"""The schema ids of source topics: those that are known, and looking up the others."""

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
# A query that stops at an unknown id looks up all ids that lie ahead, up to so many; the others wait for the next stop.
MAX_HEADERS_AHEAD = 10_000


class KnownSchemas(Protocol):
    """The schema ids of one source topic."""

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known now."""

    def learn(self, headers: set[bytes]) -> None:
        """Look up the ids in these record headers."""


class FixedSchemas:
    """The schemas given on the command line, in place of a registry; every other id is rejected."""

    def __init__(self, writers: dict[int, RecordSchema]) -> None:
        self.schema_ids = SchemaIds(writers, stop_at_unknown=False)

    def learn(self, headers: set[bytes]) -> None:
        """Do nothing: there is no registry."""


class RegistrySchemas:
    """The schema ids in the schema registry: those of the topic at first, others as they are looked up.

    The constructor and all methods raise RegistryUnavailableError when the registry does not answer: an id is rejected only
    when the registry answers that it does not have it.
    """

    def __init__(self, registry: SchemaRegistry, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._writers = registry.schema_ids(topic)
        self._rejected: set[int] = set()

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known now."""
        return SchemaIds(dict(self._writers), frozenset(self._rejected), stop_at_unknown=True)

    def refresh(self) -> None:
        """Add the ids that were registered for the topic since."""
        self._writers |= self._registry.schema_ids(self._topic)
        self._rejected -= self._writers.keys()

    def learn(self, headers: set[bytes]) -> None:
        """Fetch the schemas of the ids that are not known yet."""
        for schema_id in sorted(
            {split(header)[0] for header in headers} - self._writers.keys() - self._rejected
        ):
            schema = self._registry.schema_by_id(schema_id)
            if schema is None:
                LOG.warning("schema id %d is not in the registry: its records become dead letters", schema_id)
                self._rejected.add(schema_id)
            else:
                LOG.info("schema id %d is %s: fetched", schema_id, schema.full_name)
                self._writers[schema_id] = schema


def headers_ahead(spark: SparkSession, bootstrap_servers: str, topic: str, checkpoint: str) -> set[bytes]:
    """Return the distinct record headers between a query's checkpoint and the end of its topic.

    Looking up all their ids at once stops the query once, not once for each unknown id.
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
