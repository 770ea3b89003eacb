"""The verified records of checks with Spark: a Delta table, whose commits carry the tag."""

import logging

from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.lake.tables import verified_path
from include.quality.verified_tag import TableDigest, VerifiedTag
from include.replay.check.verified import ChangedError, VerifiedStore
from spark_jobs.folding.fold_fingerprint import merge_fingerprint
from spark_jobs.folding.fold_query import merge_columns
from spark_jobs.lake.spark_table import delta_log, newest_tag_of
from spark_jobs.lake.table_definition import TableDefinition, create_table
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.tables import SparkTables
from spark_jobs.quality.target import Target
from spark_jobs.runtime.session import SMALL_DATA, session_settings

LOG = logging.getLogger("foldlake.quality")
# Of two writers that began with the same content, Delta admits one: each commits as the next transaction of this application.
APPLICATION = "foldlake-verified"


class VerifiedTable(VerifiedStore):
    """The table of the verified records of one version."""

    _tables: SparkTables

    def __init__(self, session: CheckSession, tables: SparkTables, target: Target) -> None:
        super().__init__(tables, target, target.types.fields, _fingerprint(target))
        self._spark = session.spark
        self._lake = session.settings.lake
        self._owner = f"read model {target.model.name}"
        self._columns_of_table = target.types.columns
        self._path = verified_path(session.settings.lake_root, target.model.name, target.version.number)
        self._transaction: int | None = None

    @property
    def _location(self) -> str:
        return self._path

    def _tag(self) -> VerifiedTag | None:
        with session_settings(self._spark, SMALL_DATA):
            if not DeltaTable.isDeltaTable(self._spark, self._path):
                return None
            newest = newest_tag_of(self._spark, self._path, VerifiedTag.from_json)
            return None if newest is None else newest.tag

    def _load(self) -> None:
        number, self._transaction = _snapshot(self._spark, self._path)
        rows = self._spark.read.format("delta").option("versionAsOf", number).load(self._path)
        if rows.columns != self._columns_of_table.names:
            raise ChangedError(f"it has the columns {rows.columns}")
        self._tables["verified"] = rows

    def _digest(self, table: str) -> TableDigest:
        rows = self._tables[table]
        hashed = F.xxhash64(*rows.columns).cast("decimal(38,0)")
        found = rows.agg(
            F.count("*").alias("rows"), F.coalesce(F.sum(hashed), F.lit(0)).alias("hashes")
        ).first()
        assert found is not None  # noqa: S101 - an aggregate without groups always has one row
        return TableDigest(found.rows, int(found.hashes))

    def _save(self, tag: VerifiedTag) -> None:
        """Replace the rows in one commit, and remove files that are older than the retention of the lake."""
        self._ensure()
        # Skipped if the table has the next transaction already.
        before = _snapshot(self._spark, self._path)[1] if self._transaction is None else self._transaction
        writer = (
            self._tables["kept"]
            .repartition(self._lake.shuffle_partitions)
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .option("userMetadata", tag.to_json())
            .option("txnAppId", APPLICATION)
            .option("txnVersion", str(before + 1))
        )
        try:
            writer.save(self._path)
        except DeltaConcurrentModificationException:
            LOG.warning("another check has written verified records at the same time: its records are kept")
        DeltaTable.forPath(self._spark, self._path).vacuum(self._lake.retention_h)

    def _ensure(self) -> None:
        if DeltaTable.isDeltaTable(self._spark, self._path):
            return
        comment = f"Verified records of the {self._owner}, for incremental checks."
        definition = TableDefinition(
            self._owner, self._columns_of_table, comment, self._lake.retention_h, remedy=""
        )
        create_table(self._spark, self._path, definition)


def _fingerprint(target: Target) -> str | None:
    """Return the fingerprint of key, fold and merge; None if the fold revision has no merge, or one that cannot be built."""
    model, revision = target.model, target.version.fold_revision
    if model.merge(revision) is None:
        return None
    try:
        merge_columns(model, revision)
        return merge_fingerprint(model, revision)
    except Exception as error:  # noqa: BLE001 - a module's function can raise anything, and full checks do not need it
        LOG.warning(
            "merge %d of %s cannot be built, every check is a full one: %s", revision, model.name, error
        )
        return None


def _snapshot(spark: SparkSession, path: str) -> tuple[int, int]:
    """Return the newest version of the table, and the transaction of APPLICATION in it; 0 if there is none."""
    _, snapshot = delta_log(spark, path)
    transaction = snapshot.transactions().get(APPLICATION)
    return int(snapshot.version()), int(transaction.get()) if transaction.isDefined() else 0
