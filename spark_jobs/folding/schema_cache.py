"""Caches the schema ids of source topics, and looks up unknown ones."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, length, lit, substring

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection, SchemaRejections
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID, SchemaIds
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import HEADER_BYTES, MAGIC, split
from include.position import Offsets
from include.settings import KafkaConnection
from include.spark.kafka_clients import spark_options
from spark_jobs.folding.decode import is_undecided
from spark_jobs.runtime.checkpoint import offsets_json

LOG = logging.getLogger(__name__)
# A query that stops at an unknown id looks up at most this many ids ahead of its checkpoint; further ones at its next stop.
MAX_HEADERS_AHEAD = 10_000
# Records with an id that is not in the registry stop a query this often; each time, the id is looked up again.
LOOKUPS_BEFORE_OPEN = 5
FIRST_INTERVAL_S = 1.0
LONGEST_INTERVAL_S = 30.0
MAX_DOUBLINGS = 5
LOGGED_IDS = 20
# As raised by the decoder.
NAMED_HEADER = re.compile(rf"{UNKNOWN_SCHEMA_ID}=([0-9A-F]{{{2 * HEADER_BYTES}}})(?![0-9A-F])")


class KnownSchemas:
    """The schema ids of one source topic. Those of this class are fixed: every other id is rejected, and no registry is used."""

    def __init__(self, writers: Mapping[int, RecordSchema]) -> None:
        """Know the schemas from the command line, or none of a topic in JSON."""
        self._writers = dict(writers)

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known so far."""
        return SchemaIds(self._writers, stop_at_unknown=False)

    def refresh(self) -> None:
        """Look up the ids that have been registered for the topic."""

    def read_rejections(self) -> None:
        """Include what other processes have rejected since; each query calls it before it starts."""

    def learn(self, headers: set[bytes]) -> None:
        """Look up the ids in these record headers."""

    def registered_since(self) -> frozenset[int]:
        """Look up ids whose rejection is open; returns those that are in the registry now."""
        return frozenset()

    def close_rejections(self, schema_ids: Collection[int]) -> None:
        """End the rejection of these ids at the current ends of the topic. No query of the topic may run meanwhile."""


class RegistrySchemas(KnownSchemas):
    """The schema ids in the schema registry: initially those of the topic, then those that are looked up.

    An id is rejected only if the registry answers that it does not exist, and only for the records that were in the topic before.
    A query that finds a later one looks the id up again. After LOOKUPS_BEFORE_OPEN times the rejection is open, if the process
    leaves rejections open: records with the id no longer stop a query, and `registered_since` looks the id up, at growing
    intervals.

    ends: returns the current ends of the topic. leaves_open: for the one process that also closes them, the stream driver. The constructor
    and all methods raise RegistryUnavailableError when the registry does not answer, and KafkaUnavailableError when the broker does not.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        topic: str,
        rejections: SchemaRejections,
        ends: Callable[[], Offsets],
        *,
        leaves_open: bool,
    ) -> None:
        self._registry = registry
        self._topic = topic
        self._store = rejections
        self._ends = ends
        self._leaves_open = leaves_open
        super().__init__(registry.schema_ids(topic))
        self._rejected = rejections.read(topic)
        if leaves_open:
            # Left by an earlier process. Nothing runs yet, so each id can be looked up again from here on.
            self.close_rejections([i for i, rejection in self._rejected.items() if rejection.is_open])
        self._lookups: Counter[int] = Counter()
        self._look_up_at_s: dict[int, float] = {}

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids that are known so far."""
        return SchemaIds(dict(self._writers), dict(self._rejected), stop_at_unknown=True)

    def refresh(self) -> None:
        """Add the ids that have been registered for the topic since."""
        self._writers |= self._registry.schema_ids(self._topic)

    def read_rejections(self) -> None:
        """Include what other processes have rejected since."""
        self._rejected = self._store.read(self._topic)

    def learn(self, headers: set[bytes]) -> None:
        """Look up the ids in these headers, unless their schemas are known or their rejections open."""
        is_open = {i for i, rejection in self._rejected.items() if rejection.is_open}
        ids = {split(found)[0] for found in headers} - self._writers.keys() - is_open
        if not ids:
            return
        # Before the lookups: a record behind these ends may have been written after its schema was registered.
        ends = self._ends()
        absent = {schema_id for schema_id in ids if not self._look_up(schema_id)}
        self._lookups.update(absent)
        # Another process may have rejected records with these ids too.
        self.read_rejections()
        self._reject(
            {
                i: Rejection(ends, self._leaves_open and self._lookups[i] >= LOOKUPS_BEFORE_OPEN)
                for i in absent
            }
        )

    def registered_since(self) -> frozenset[int]:
        """Look up the ids that are due among those whose rejection is open; returns those that are in the registry now."""
        found = set()
        now_s = time.monotonic()
        for schema_id, rejection in self._rejected.items():
            if rejection.is_open and now_s >= self._look_up_at_s.get(schema_id, 0.0):
                if self._registry.schema_by_id(schema_id) is not None:
                    found.add(schema_id)
                self._lookups[schema_id] += 1
                doublings = min(self._lookups[schema_id], MAX_DOUBLINGS)
                self._look_up_at_s[schema_id] = now_s + min(
                    LONGEST_INTERVAL_S, FIRST_INTERVAL_S * 2**doublings
                )
        return frozenset(found)

    def close_rejections(self, schema_ids: Collection[int]) -> None:
        """End the rejection of these ids."""
        if not schema_ids:
            return
        ends = self._ends()
        self._reject({schema_id: Rejection(ends) for schema_id in schema_ids})
        for schema_id in schema_ids:
            self._look_up(schema_id)

    def _look_up(self, schema_id: int) -> bool:
        """Fetch the schema of an id; returns whether the registry has it."""
        schema = self._registry.schema_by_id(schema_id)
        if schema is None:
            return False
        LOG.info("fetched schema id %d: %s", schema_id, schema.full_name)
        self._writers[schema_id] = schema
        return True

    def _reject(self, rejections: Mapping[int, Rejection]) -> None:
        if not rejections:
            return
        self._store.write(self._topic, rejections)
        self.read_rejections()
        for is_open in (False, True):
            ids = sorted(i for i, rejection in rejections.items() if rejection.is_open is is_open)
            if ids:
                LOG.warning(
                    "%d schema ids are rejected, %s: %s%s",
                    len(ids),
                    "until the registry has them"
                    if is_open
                    else f"up to {rejections[ids[0]].until} of {self._topic}",
                    ", ".join(map(str, ids[:LOGGED_IDS])),
                    ", ..." if len(ids) > LOGGED_IDS else "",
                )


def learn_ids(
    spark: SparkSession,
    schemas: KnownSchemas,
    error: str,
    kafka: KafkaConnection,
    topic: str,
    checkpoint: str,
) -> None:
    """Look up the schema ids that an error of a query names, and those of the records ahead of its checkpoint."""
    # First, so that they are known even if the records ahead cannot be read.
    schemas.learn(named_headers(error))
    schemas.learn(headers_ahead(spark, kafka, topic, checkpoint, schemas.schema_ids))


def named_headers(error: str) -> set[bytes]:
    """Return the headers of the unknown schema ids that an error of Spark names. It may name none.

    In real-time mode, an error is that of the first failed task, and its text does not always contain the cause.
    """
    return {bytes.fromhex(found) for found in NAMED_HEADER.findall(error)}


def headers_ahead(
    spark: SparkSession, kafka: KafkaConnection, topic: str, checkpoint: str, known: SchemaIds
) -> set[bytes]:
    """Return the distinct headers with an undecided schema id between a query's checkpoint and the end of its topic.

    Looking up all of their ids together stops the query once instead of once per unknown id. At most MAX_HEADERS_AHEAD are
    returned; the caller then knows these, and the next call returns others.
    """
    records = (
        spark.read.format("kafka")
        .options(**spark_options(kafka))
        .option("subscribe", topic)
        .option("startingOffsets", offsets_json(spark, checkpoint) or "earliest")
        .load()
    )
    found = col("header")
    headers = records.select(
        col("partition").alias(PARTITION),
        col("offset").alias(OFFSET),
        substring(col("value"), 1, HEADER_BYTES).alias("header"),
    )
    # Filtered before they are limited: any number of records without a schema id may be ahead of the one that is searched.
    unknown = headers.where(
        (length(found) == HEADER_BYTES)
        & (substring(found, 1, 1) == lit(bytes([MAGIC])))
        & is_undecided(found, known)
    )
    return {
        bytes(row.header) for row in unknown.select("header").distinct().limit(MAX_HEADERS_AHEAD).collect()
    }
