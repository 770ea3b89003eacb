"""A Delta table as a store: one version of it; the tag of its newest tagged commit has the cut."""

from contextlib import closing

import duckdb

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import KEY_COLUMN
from include.kafka.log_reading import age_beyond_s, log_consumer
from include.lake.sql_tables import quoted
from include.lake.tagged_table import TaggedTable, newest_tag
from include.lake.tags import CommitTag
from include.position import SOURCE_OFFSET, Offsets
from include.quality.check import StoreName, TableMissingError
from include.replay.check.comparison import below
from include.replay.check.readings import PLACE, Reading, Replica
from include.replay.check.stores.stored_records import StoredRecords
from include.replay.check.target import CheckTarget, OtherEngineError
from include.replay.event_relation import EVENTS

TABLE = "delta_table"


class DeltaStore:
    """A Delta table whose commits carry a tag: one version of it."""

    may_catch_up = False

    def __init__(self, name: StoreName, target: CheckTarget, path: str, stored: StoredRecords) -> None:
        self.name = name
        self._target = target
        self._path = path
        self._stored = stored
        table = TaggedTable.open(path, CommitTag.from_json)
        if table is None:
            raise TableMissingError.of(path, name, target.model.name)
        newest = newest_tag(table.history)
        if newest is None:
            raise OtherEngineError(f"{path} has no commit with a tag")
        self.tag, self._version = newest.tag, newest.delta_version

    def key_counts(self) -> dict[str, int]:
        """Return the number of rows."""
        found = self._stored.connection.execute(f"SELECT count(*) FROM {self.table}").fetchone()
        assert found is not None  # noqa: S101 - an aggregate without groups has one row
        return {str(self.name): int(found[0])}

    def read(self) -> Reading:
        """Add the table's rows, whose cut is in its tag."""
        stored, place = self._stored, str(self.name)
        columns = ", ".join(f'"{one}"' for one in stored.records.schema.names if one != PLACE)
        stored.connection.execute(
            f'INSERT INTO stored BY NAME SELECT {quoted(place)} AS "{PLACE}", {columns} FROM {self.table} WHERE {stored.condition}'
        )
        faults: tuple[str, ...] = ()
        if self.tag.version != self._target.version.number:
            mismatch = (
                f"the {self.name} holds version {self.tag.version}, not version {self._target.version.number}"
            )
            faults = (f"{mismatch}: it has not been promoted yet, or was rolled back",)
        notes = (f"{self.name}: read as of version {self._version} of the Delta table",)
        return Reading((Replica(place, place, self.tag.complete_up_to),), faults, notes, self._version)

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return how long ago the oldest event that the lake lacks was appended; 0 for another table.

        The tag gives an upper bound: it has the offsets that the stream had committed, which may trail the rows, because the stream commits at
        intervals and not when it is stopped. If that bound is too old, the rows are searched instead.
        """
        if self.name is not StoreName.LAKE:
            return 0.0
        target, connection = self._target, self._stored.connection
        kafka, topic = target.settings.kafka_connection, target.model.source_topic
        with closing(log_consumer(kafka)) as consumer:
            at_most_s = age_beyond_s(consumer, topic, complete_up_to, target.cut)
            if at_most_s <= target.settings.quality.max_lake_age_s:
                return at_most_s
            missing = connection.execute(
                f"""SELECT "{PARTITION}", min("{OFFSET}") FROM {EVENTS} AS events
                LEFT JOIN {self.table} AS stored ON stored."{KEY_COLUMN}" = events.key
                WHERE ({below(target.cut)}) AND NOT ({below(complete_up_to)})
                  AND (stored.{SOURCE_OFFSET.name} IS NULL OR stored.{SOURCE_OFFSET.name} < "{OFFSET}")
                GROUP BY ALL"""
            ).fetchall()
            first = Offsets(dict(missing))
            return age_beyond_s(consumer, topic, first, Offsets({p: target.cut[p] for p in first}))

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    @property
    def table(self) -> str:
        """The version of the table in SQL."""
        return delta_rows(self._stored.connection, f"{TABLE}_{self.name}", self._path, self._version)


def delta_rows(connection: duckdb.DuckDBPyConnection, name: str, path: str, version: int) -> str:
    """Return a version of a Delta table in SQL. name: of the database under which it is attached."""
    attached = connection.execute(
        "SELECT count(*) FROM duckdb_databases() WHERE database_name = ?", [name]
    ).fetchone()
    if attached == (0,):
        connection.execute(f'ATTACH {quoted(path)} AS "{name}" (TYPE delta, READ_ONLY)')
    return f'(SELECT * FROM "{name}" AT (VERSION => {version}))'
