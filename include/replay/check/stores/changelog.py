"""A version's changelog as a store: the newest state record of each key."""

from collections.abc import Collection
from contextlib import closing

import pyarrow as pa

from include.kafka.log_reading import log_consumer
from include.kafka.topic_state import topic_state
from include.lake.sql_tables import quoted
from include.position import EVENT_COUNT, Offsets
from include.quality.check import QualityError, StoreName
from include.replay.check.readings import Reading, Replica
from include.replay.check.stores.stored_records import StoredRecords
from include.replay.check.target import CheckTarget, OtherEngineError
from include.replay.log_events import record_batches
from include.stream.checkpoints import checkpoint_path, committed_offsets

CHANGES = "changelog_records"
# After a kill, the driver repeats records: the newest one is that with most events since the last deletion.
NEWEST = f"""SELECT key, arg_max(record, (record.{EVENT_COUNT.name}, "offset")) AS record
FROM {CHANGES} LEFT JOIN (SELECT key, max("offset") AS deletion FROM {CHANGES} WHERE record IS NULL GROUP BY key) USING (key)
WHERE record IS NOT NULL AND "offset" > coalesce(deletion, -1) GROUP BY key"""


class ChangelogStore:
    """A version's changelog: the newest record of each key.

    The cut of a version that the driver folds is the source's end, at once or within the check's wait; of one that is being built, the
    offsets that are committed in its checkpoint.
    """

    name = StoreName.CHANGELOG

    def __init__(self, target: CheckTarget, stored: StoredRecords) -> None:
        self._target = target
        self._stored = stored
        self._cut = target.cut if target.version.is_active else _committed(target)
        self.may_catch_up = target.version.is_active

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys without deleted ones; reads the topic."""
        self._read()
        found = self._stored.connection.execute(f"SELECT count(*) FROM ({NEWEST})").fetchone()
        assert found is not None  # noqa: S101 - an aggregate without groups has one row
        return {str(self.name): int(found[0])}

    def read(self) -> Reading:
        """Add the newest record of each key up to the topic's current end."""
        self._add()
        return Reading((Replica(str(self.name), str(self.name), self._cut),))

    def reread(self, places: Collection[str]) -> None:
        """Replace all records."""
        if str(self.name) in places:
            self._stored.remove([str(self.name)])
            self._add()

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return 0: only the age of the lake is limited."""
        del complete_up_to
        return 0.0

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    def _add(self) -> None:
        self._read()
        fields = ", ".join(f'record."{field.name}"' for field in self._stored.records.fields)
        self._stored.connection.execute(
            f"INSERT INTO stored SELECT {quoted(self.name)}, key, {fields} FROM ({NEWEST}) WHERE {self._stored.condition}"
        )

    def _read(self) -> None:
        """Read the topic into a table: key, offset, and the record, null for a deletion."""
        connection, records = self._stored.connection, self._stored.records
        schema = pa.schema([("key", pa.string()), ("offset", pa.int64()), ("record", records.fields)])
        connection.register("changes", schema.empty_table())
        connection.execute(f"CREATE OR REPLACE TABLE {CHANGES} AS SELECT * FROM changes")
        kafka, topic = self._target.settings.kafka_connection, self._target.version.changelog_topic
        state = topic_state(kafka, topic)
        if state is None:
            raise QualityError(f"The changelog {topic} does not exist.")
        ranges = {partition: (state.starts.of(partition), end) for partition, end in state.ends.items()}
        with closing(log_consumer(kafka)) as consumer:
            for found in record_batches(consumer, topic, ranges):
                keys = pa.array(found.keys, pa.binary()).cast(pa.string())
                columns = [keys, pa.array(found.offsets, pa.int64()), records.decoded(found.values)]
                connection.register("changes", pa.RecordBatch.from_arrays(columns, schema=schema))
                connection.execute(f"INSERT INTO {CHANGES} SELECT * FROM changes")
        connection.unregister("changes")


def _committed(target: CheckTarget) -> Offsets:
    checkpoint = checkpoint_path(target.settings.checkpoints, target.model.name, target.version.number)
    if "://" in checkpoint.removeprefix("file://"):
        raise OtherEngineError("the checkpoints are not on a file system of this machine")
    offsets = committed_offsets(checkpoint, target.model.source_topic)
    if not offsets:
        raise QualityError(
            f"Version {target.version.number} of {target.model.name} has no committed batch in {checkpoint}: "
            "wait until its catch-up has committed one."
        )
    return offsets
