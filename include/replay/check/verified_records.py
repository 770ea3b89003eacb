"""The verified records of a version: kept by checks that pass, so that an incremental check replays only the events since.

A row is the replay of a key's events up to a position at which a store had the key's record. It depends on the log alone, so all stores
share the rows. For each store in the tag, each key has a row that contains the key's events below the store's `verified_up_to`, and no
event that a correct record of the store may lack. They are one Parquet file, which is replaced as a whole; its metadata has the tag.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from include.declarations.read_model import ReadModel
from include.declarations.rules.notation import notation
from include.files import PRIVATE_FILE
from include.kafka.topic_state import topic_state
from include.lake.sql_tables import quoted
from include.lake.tables import verified_file
from include.position import SOURCE_OFFSET, SOURCE_PARTITION, Offsets
from include.quality.check import FullCheckNeededError, StoreName
from include.quality.verified_tag import TableDigest, VerifiedMark, VerifiedTag, verified_by_all
from include.replay.check.comparison import below
from include.replay.check.target import CheckTarget
from include.replay.fold_sql import merge_sql

LOG = logging.getLogger("foldlake.quality")
METADATA = b"foldlake"
# DuckDB's hash of a row may change with its release.
ENGINE = f"duckdb {duckdb.__version__}"


@dataclass(frozen=True)
class VerifiedRecords:
    """The records from which an incremental check continues. marks: how far the stores of this check are verified."""

    tag: VerifiedTag
    marks: Mapping[str, VerifiedMark]

    @property
    def since(self) -> Offsets:
        """Source partition -> offset below which all stores of this check are verified."""
        return verified_by_all(self.marks.values())


class VerifiedFile:
    """The file of a version's verified records. fingerprint: of the rules that made them; None if they cannot be merged."""

    def __init__(self, target: CheckTarget, fields: Sequence[str]) -> None:
        self._target = target
        self._columns = ("key", *fields)
        self._path = Path(
            verified_file(
                target.settings.lake_root.removeprefix("file://"), target.model.name, target.version.number
            )
        )
        self.fingerprint = _fingerprint(target.model, target.version.fold_revision)
        state = topic_state(target.settings.kafka.bootstrap_servers, target.model.source_topic)
        self.topic_id = "" if state is None else state.topic_id

    def read(self, connection: duckdb.DuckDBPyConnection, stores: Sequence[StoreName]) -> VerifiedRecords:
        """Create the table `verified` of the records, which must be of these rules and stores.

        Raises FullCheckNeededError when there are none, or when they are not what the check has written that verified them.
        """
        if self.fingerprint is None:
            raise FullCheckNeededError(f"fold revision {self._target.version.fold_revision} has no merge")
        tag = self._tag()
        if tag is None:
            raise FullCheckNeededError("no full check has verified the records yet")
        if tag.fold != self.fingerprint:
            raise FullCheckNeededError(
                "key, fold or merge of the read model, or the engine, have changed since the last full check"
            )
        if tag.topic_id != self.topic_id:
            raise FullCheckNeededError("the source topic was created anew since the last full check")
        absent = [store for store in stores if str(store) not in tag.stores]
        if absent:
            raise FullCheckNeededError(f"no full check has verified the records of {', '.join(absent)} yet")
        try:
            connection.execute(
                f"CREATE TABLE verified AS SELECT {self._names} FROM read_parquet({quoted(self._path)})"
            )
            found = digest_of(connection, "verified", self._columns)
        except duckdb.Error as error:
            raise self._changed(str(error)) from error
        if found != tag.digest or not tag.is_chained:
            raise self._changed(f"its digest is {found}, not {tag.digest}")
        return VerifiedRecords(tag, {str(store): tag.stores[str(store)] for store in stores})

    def write(
        self,
        connection: duckdb.DuckDBPyConnection,
        rows: str,
        marks: Mapping[str, VerifiedMark],
        run_id: str,
        basis: VerifiedTag | None = None,
    ) -> None:
        """Replace the records by those of a query, unless another check has replaced the ones that they go on from.

        marks: of the stores that this check has verified. basis: the tag of the records that the rows go on from; None: of none.
        """
        current = self._tag()
        if basis is not None and (current is None or current.chain != basis.chain):
            LOG.warning("another check has written verified records at the same time: its records are kept")
            return
        stores = {**(basis.stores if basis else {}), **marks}
        offsets = verified_by_all(stores.values())
        is_below = below(offsets, SOURCE_PARTITION.name, SOURCE_OFFSET.name)
        # Every store has the newest row below all of their `verified_up_to`, so that no check needs an older one.
        connection.execute(
            f"""CREATE OR REPLACE TABLE kept AS SELECT {self._names} FROM ({rows})
            QUALIFY NOT ({is_below}) OR row_number() OVER (PARTITION BY key, {is_below} ORDER BY {SOURCE_OFFSET.name} DESC) = 1"""
        )
        target = self._target
        tag = VerifiedTag(
            target.model.name,
            target.version.number,
            target.version.fold_revision,
            self.fingerprint or "",
            self.topic_id,
            stores,
            digest_of(connection, "kept", self._columns),
            0,
            run_id,
            basis.chain if basis else "",
        ).chained()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            temporary.touch(PRIVATE_FILE)
            reader = connection.execute("SELECT * FROM kept").fetch_record_batch()
            schema = reader.schema.with_metadata({METADATA: tag.to_json().encode()})
            with pq.ParquetWriter(temporary, schema) as writer:
                for batch in reader:
                    writer.write_batch(batch.cast(schema))
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)

    @property
    def _names(self) -> str:
        return ", ".join(f'"{name}"' for name in self._columns)

    def _tag(self) -> VerifiedTag | None:
        try:
            metadata = pq.read_schema(self._path).metadata or {}
        except (OSError, ValueError):
            # Absent, or not a Parquet file.
            return None
        return VerifiedTag.from_json(metadata.get(METADATA, b"").decode(errors="replace"))

    def _changed(self, how: str) -> FullCheckNeededError:
        LOG.warning("%s was changed by another program (%s): its records are not used", self._path, how)
        return FullCheckNeededError("another program has changed the verified records")


def digest_of(connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> TableDigest:
    """Return the digest of the rows of a table."""
    names = ", ".join(f'"{name}"' for name in columns)
    row = connection.execute(
        f"SELECT count(*), coalesce(sum(CAST(hash(row({names})) AS HUGEINT)), 0) FROM {table}"
    ).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without groups has one row
    return TableDigest(int(row[0]), int(row[1]))


def _fingerprint(model: ReadModel, revision: int) -> str | None:
    """Return a fingerprint of key, fold and merge as DuckDB computes them: records merged by the same ones can be merged further."""
    fold, merge = model.folds[revision], model.merge(revision)
    if not isinstance(fold, Mapping) or not isinstance(merge, Mapping) or merge_sql(model, revision) is None:
        return None
    texts = [{name: notation(text) for name, text in rules.items()} for rules in (fold, merge)]
    types = {field.name: field.avro_type for field in model.state_fields(revision)}
    rule = json.dumps([ENGINE, notation(str(model.key)), *texts, types], sort_keys=True)
    return hashlib.sha256(rule.encode()).hexdigest()
