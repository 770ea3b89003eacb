"""The verified records of checks with DuckDB: one Parquet file, whose metadata has the tag."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from include.declarations.read_model import ReadModel
from include.declarations.rules.notation import notation
from include.files import PRIVATE_FILE
from include.lake.sql_tables import quoted
from include.lake.tables import verified_file
from include.quality.verified_tag import TableDigest, VerifiedTag
from include.replay.check.tables import DuckDbTables
from include.replay.check.target import CheckTarget
from include.replay.check.verified import ChangedError, VerifiedStore
from include.replay.database import ENGINE, digest_of
from include.replay.fold_sql import merge_sql

METADATA = b"foldlake"


class VerifiedFile(VerifiedStore):
    """The file of a version's verified records."""

    def __init__(self, tables: DuckDbTables, target: CheckTarget, fields: Sequence[str]) -> None:
        super().__init__(tables, target, fields, _fingerprint(target.model, target.version.fold_revision))
        lake_root = target.settings.lake_root.removeprefix("file://")
        self._connection = tables.connection
        self._path = Path(verified_file(lake_root, target.model.name, target.version.number))

    @property
    def _location(self) -> str:
        return str(self._path)

    def _tag(self) -> VerifiedTag | None:
        try:
            metadata = pq.read_schema(self._path).metadata or {}
        except (OSError, ValueError):
            # Absent, or not a Parquet file.
            return None
        return VerifiedTag.from_json(metadata.get(METADATA, b"").decode(errors="replace"))

    def _load(self) -> None:
        try:
            self._tables.create(
                "verified", f"SELECT {self._names} FROM read_parquet({quoted(self._location)})"
            )
        except duckdb.Error as error:
            raise ChangedError(str(error)) from error

    def _digest(self, table: str) -> TableDigest:
        return digest_of(self._connection, table, f"hash(row({self._names}))")

    def _save(self, tag: VerifiedTag) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            temporary.touch(PRIVATE_FILE)
            reader = self._connection.execute("SELECT * FROM kept").fetch_record_batch()
            schema = reader.schema.with_metadata({METADATA: tag.to_json().encode()})
            with pq.ParquetWriter(temporary, schema) as writer:
                for batch in reader:
                    writer.write_batch(batch.cast(schema))
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)


def _fingerprint(model: ReadModel, revision: int) -> str | None:
    """Return a fingerprint of key, fold and merge as DuckDB computes them: records merged by the same ones can be merged further."""
    fold, merge = model.folds[revision], model.merge(revision)
    if not isinstance(fold, Mapping) or not isinstance(merge, Mapping) or merge_sql(model, revision) is None:
        return None
    texts = [{name: notation(text) for name, text in rules.items()} for rules in (fold, merge)]
    types = {field.name: field.avro_type for field in model.state_fields(revision)}
    rule = json.dumps([ENGINE, notation(str(model.key)), *texts, types], sort_keys=True)
    return hashlib.sha256(rule.encode()).hexdigest()
