"""The Delta table of a version's verified records: read with its digest, and written after a passed check.

A row is the replay of a key's events up to a position at which a store had the key's record. It depends on the log alone, so all
stores share the table. For each store in the tag, each key has a row that contains the key's events below the store's
`verified_up_to`, and no event that a correct record of the store may lack.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.kafka.topic_state import topic_state
from include.lake.tables import verified_path
from include.position import Offsets
from include.quality.check import FullCheckNeededError, StoreName
from include.quality.verified_tag import TableDigest, VerifiedMark, VerifiedTag, verified_by_all
from spark_jobs.folding.fold_fingerprint import merge_fingerprint
from spark_jobs.folding.fold_query import merge_columns
from spark_jobs.lake.spark_table import delta_log, newest_tag_of
from spark_jobs.lake.table_definition import TableDefinition, create_table
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.target import Target
from spark_jobs.runtime.session import SMALL_DATA, session_settings

LOG = logging.getLogger("foldlake.quality")
# Of two writers that began with the same content, Delta admits one: each commits as the next transaction of this application.
APPLICATION = "foldlake-verified"


@dataclass(frozen=True)
class CheckFingerprint:
    """The fingerprint of key, fold and merge, and Kafka's id of the source topic; records of another basis are not used."""

    fold: str
    topic_id: str


def _basis_of(bootstrap_servers: str, target: Target) -> CheckFingerprint | None:
    """Return the basis of a version's verified records; None if its fold revision has no merge, or one that cannot be built."""
    model, revision = target.model, target.version.fold_revision
    if model.merge(revision) is None:
        return None
    try:
        merge_columns(model, revision)
        fold = merge_fingerprint(model, revision)
    except Exception as error:  # noqa: BLE001 - a module's function can raise anything, and full checks do not need it
        LOG.warning(
            "merge %d of %s cannot be built, every check is a full one: %s", revision, model.name, error
        )
        return None
    topic = topic_state(bootstrap_servers, model.source_topic)
    return None if topic is None else CheckFingerprint(fold, topic.topic_id)


@dataclass(frozen=True)
class VerifiedRecords:
    """The verified records as of one commit.

    marks: how far the stores of this check are verified. rows: key, the state's fields, the position. transaction: of APPLICATION, as
    of that commit.
    """

    tag: VerifiedTag
    marks: Mapping[str, VerifiedMark]
    rows: DataFrame
    transaction: int

    @property
    def since(self) -> Offsets:
        """Source partition -> offset below which all stores of this check are verified."""
        return verified_by_all(self.marks.values())


class VerifiedTable:
    """The table of the verified records of one version.

    basis: of records that may be used and kept; None if there can be none.
    """

    def __init__(self, session: CheckSession, target: Target) -> None:
        self.basis = _basis_of(session.settings.kafka.bootstrap_servers, target)
        self._spark = session.spark
        self._fold_revision = target.version.fold_revision
        self._lake = session.settings.lake
        self._owner = f"read model {target.model.name}"
        self._path = verified_path(session.settings.lake_root, target.model.name, target.version.number)
        self.columns = target.types.columns

    def read(self, stores: Sequence[StoreName]) -> VerifiedRecords:
        """Return the newest records, which must have the table's basis and be of these stores.

        Raises FullCheckNeededError when there are none, or when they are not what the check has written that verified them.
        """
        with session_settings(self._spark, SMALL_DATA):
            return self._read(stores)

    def _read(self, stores: Sequence[StoreName]) -> VerifiedRecords:
        if self.basis is None:
            raise FullCheckNeededError(f"fold revision {self._fold_revision} has no merge")
        if not DeltaTable.isDeltaTable(self._spark, self._path):
            raise FullCheckNeededError("no full check has verified the records yet")
        number, transaction = _snapshot(self._spark, self._path)
        newest = newest_tag_of(self._spark, self._path, VerifiedTag.from_json)
        if newest is None:
            raise FullCheckNeededError("no full check has verified the records yet")
        tag = newest.tag
        if tag.fold != self.basis.fold:
            raise FullCheckNeededError(
                "key, fold or merge of the read model have changed since the last full check"
            )
        if tag.topic_id != self.basis.topic_id:
            raise FullCheckNeededError("the source topic was created anew since the last full check")
        absent = [store for store in stores if str(store) not in tag.stores]
        if absent:
            raise FullCheckNeededError(f"no full check has verified the records of {', '.join(absent)} yet")
        rows = self._spark.read.format("delta").option("versionAsOf", number).load(self._path)
        if rows.columns != self.columns.names:
            raise FullCheckNeededError(self._changed(f"it has the columns {rows.columns}"))
        found = digest_of(rows)
        if found != tag.digest or not tag.is_chained:
            raise FullCheckNeededError(self._changed(f"its digest is {found}, not {tag.digest}"))
        marks = {str(store): tag.stores[str(store)] for store in stores}
        return VerifiedRecords(tag, marks, rows, transaction)

    def append(self, rows: DataFrame, tag: VerifiedTag, transaction: int) -> None:
        """Add rows in one commit, unless another check has written since the transaction that was read."""
        self._write(rows, tag, transaction + 1, "append")

    def overwrite(self, rows: DataFrame, tag: VerifiedTag, transaction: int | None = None) -> None:
        """Replace all rows in one commit, and remove files that are older than the retention of the lake.

        transaction: that was read, if the rows go on from it.
        """
        self._ensure()
        if transaction is None:
            _, transaction = _snapshot(self._spark, self._path)
        self._write(rows.repartition(self._lake.shuffle_partitions), tag, transaction + 1, "overwrite")
        DeltaTable.forPath(self._spark, self._path).vacuum(self._lake.retention_h)

    def _write(self, rows: DataFrame, tag: VerifiedTag, transaction: int, mode: str) -> None:
        writer = (
            rows.write.format("delta")
            .mode(mode)
            .option("userMetadata", tag.chained().to_json())
            # Skipped if the table has this transaction already.
            .option("txnAppId", APPLICATION)
            .option("txnVersion", str(transaction))
        )
        if mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        try:
            writer.save(self._path)
        except DeltaConcurrentModificationException:
            LOG.warning("another check has written verified records at the same time: its records are kept")

    def _ensure(self) -> None:
        if DeltaTable.isDeltaTable(self._spark, self._path):
            return
        comment = f"Verified records of the {self._owner}, for incremental checks."
        definition = TableDefinition(self._owner, self.columns, comment, self._lake.retention_h, remedy="")
        create_table(self._spark, self._path, definition)

    def _changed(self, how: str) -> str:
        LOG.warning("%s was changed by another program (%s): its records are not used", self._path, how)
        return "another program has changed the verified records"


def digest_of(rows: DataFrame) -> TableDigest:
    """Return the digest of some rows; runs a Spark job."""
    hashed = F.xxhash64(*rows.columns).cast("decimal(38,0)")
    row = rows.agg(F.count("*").alias("rows"), F.coalesce(F.sum(hashed), F.lit(0)).alias("hashes")).first()
    assert row is not None  # noqa: S101 - an aggregate without groups always has one row
    return TableDigest(row.rows, int(row.hashes))


def _snapshot(spark: SparkSession, path: str) -> tuple[int, int]:
    """Return the newest version of the table, and the transaction of APPLICATION in it; 0 if there is none."""
    _, snapshot = delta_log(spark, path)
    transaction = snapshot.transactions().get(APPLICATION)
    return int(snapshot.version()), int(transaction.get()) if transaction.isDefined() else 0
