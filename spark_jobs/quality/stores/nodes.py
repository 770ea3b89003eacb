"""The stores of the query nodes, read through their API: each copy of a partition on a node is a replica.

The pages of a partition are read one after the other while its records change. A record is compared as of its own position; a
key that appears behind the cursor, or changes after it was read, is read again individually.
"""

import json
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, explode, from_json, input_file_name, regexp_extract
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from include.nodes.node_url import PeerRule
from include.nodes.record_client import NodeClient, PartitionReplica, ReplicaUnavailableError
from include.position import POSITION_COLUMNS
from include.quality.check import QualityError, StoreName
from include.quality.scratch_dir import spool_dir
from spark_jobs.quality.stores.base import Reading, Sample, StoreReplica, Target

# Few, because the nodes also serve lookups.
READERS = 4
# Up to this many keys are read again one by one; for more, the partitions are listed again.
SINGLE_KEYS = 1_000
# An unreadable record must not look like a missing one.
FAILFAST = {"mode": "FAILFAST"}
FILE_NAME = r"(\d+)\.ndjson"


class NodesStore:
    """Every partition of the version on every node that stores it, as owner or standby."""

    name = StoreName.NODES

    def __init__(self, target: Target) -> None:
        self._target = target
        model, settings = target.model, target.settings
        self._client = NodeClient(
            settings.kafka.bootstrap_servers,
            PeerRule.of_client(settings.node),
            model.name,
            target.version.number,
            model.source_topic,
        )
        self._replicas = self._client.replicas(settings.quality.wait_s)
        if not self._replicas.ready:
            reason = (
                "; ".join(self._replicas.unreachable)
                or "run `./foldlake status` to see whether the nodes run"
            )
            message = f"No query node is ready to serve {model.name} v{target.version.number}: {reason}."
            raise QualityError(message)
        self._spool = spool_dir()
        self._listings = 0

    @property
    def may_catch_up(self) -> bool:
        """True: nodes follow a growing changelog."""
        return True

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys of each partition on each node."""
        deadline_s = self._deadline_s()
        return {replica.name: self._client.key_count(replica, deadline_s) for replica in self._replicas.ready}

    def read(self, sample: Sample) -> Reading:
        """List the records of every replica."""
        found = self._replicas
        records, faults = self._list(found.ready, sample)
        replicas = tuple(StoreReplica(r.name, self._target.cut, r.partition) for r in found.ready)
        faults += [f"partition {partition} has no ready owner" for partition in found.unowned]
        return Reading(replicas, records, (*faults, *found.unreachable))

    def reread(self, keys: DataFrame) -> DataFrame:
        """Read the records of these keys one by one, or list their replicas again if there are many keys."""
        by_name = {replica.name: replica for replica in self._replicas.ready}
        mine = keys.where(col("place").isin(list(by_name))).select("place", "key")
        rows = mine.limit(SINGLE_KEYS + 1).collect()
        if len(rows) > SINGLE_KEYS:
            again = [by_name[row.place] for row in mine.select("place").distinct().collect()]
            records, _ = self._list(again, Sample())
            return records.join(mine, ["place", "key"], "left_semi")
        deadline_s = self._deadline_s()

        def read_record(row: Sequence[str]) -> str:
            try:
                record = self._client.record(by_name[row[0]], row[1], deadline_s)
            except ReplicaUnavailableError:
                record = None  # it was missing or behind before, and remains so
            return f'{{"place":{json.dumps(row[0])},"records":[{record or ""}]}}'

        with ThreadPoolExecutor(READERS) as readers:
            lines = list(readers.map(read_record, rows))
        spark = self._target.spark
        texts = spark.createDataFrame([(line,) for line in lines], "value string")
        parsed = texts.select(from_json("value", self._type(with_replica=True), FAILFAST).alias("page"))
        return self._columns(parsed.select(col("page.place").alias("place"), "page.records"))

    def close(self) -> None:
        """Close the client and remove the spooled pages."""
        self._client.close()
        shutil.rmtree(self._spool, ignore_errors=True)

    def _list(self, replicas: Sequence[PartitionReplica], sample: Sample) -> tuple[DataFrame, list[str]]:
        """Return the records of some replicas, and a fault for each replica that could not be read."""
        self._listings += 1
        folder = self._spool / str(self._listings)
        folder.mkdir(parents=True)
        faults: list[str] = []

        def spool(number: int) -> None:
            try:
                self._spool_pages(folder / f"{number}.ndjson", replicas[number], sample)
            except ReplicaUnavailableError as error:
                faults.append(str(error))

        with ThreadPoolExecutor(READERS) as readers:
            list(readers.map(spool, range(len(replicas))))
        spark = self._target.spark
        names = spark.createDataFrame(
            [(str(number), replica.name) for number, replica in enumerate(replicas)],
            "number string, place string",
        )
        pages = spark.read.text(str(folder)).select(
            regexp_extract(input_file_name(), FILE_NAME, 1).alias("number"),
            from_json("value", self._type(with_replica=False), FAILFAST).alias("page"),
        )
        return self._columns(pages.join(names, "number").select("place", "page.records")), faults

    def _spool_pages(self, path: Path, replica: PartitionReplica, sample: Sample) -> None:
        """Write the pages of a partition to a file, one per line."""
        with path.open("w", encoding="utf-8") as file:
            for page in self._client.pages(replica, sample, self._target.settings.quality.wait_s):
                file.write(page + "\n")

    def _columns(self, pages: DataFrame) -> DataFrame:
        return pages.select("place", explode("records").alias("record")).select(
            "place",
            col("record.key").alias("key"),
            col("record.state").alias("state"),
            *(col(f"record.{name}").alias(name) for name in POSITION_COLUMNS),
        )

    def _type(self, *, with_replica: bool) -> StructType:
        target = self._target
        record = StructType(
            [
                StructField("key", StringType()),
                StructField("state", target.state_type),
                *(StructField(name, target.position_type[name]) for name in POSITION_COLUMNS),
            ]
        )
        fields = [StructField("records", ArrayType(record))]
        return StructType([StructField("place", StringType()), *fields] if with_replica else fields)

    def _deadline_s(self) -> float:
        return time.monotonic() + self._target.settings.quality.wait_s
