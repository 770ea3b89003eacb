"""The changelog as a store: the newest state record of each key, read from the topic in one batch."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit

from include.lake.tables import table_fields
from include.position import Offsets
from include.quality.check import QualityError, StoreName
from include.replay.check.readings import Reading, Replica
from include.stream.checkpoints import checkpoint_path
from spark_jobs.folding.replay import source_ends
from spark_jobs.lake.changelog_batch import DELETED, Changelog, readable
from spark_jobs.lake.table_definition import column_types
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.stores.base import StoredFrames, of_pairs
from spark_jobs.quality.target import Target
from spark_jobs.runtime.checkpoint import committed_offsets


class ChangelogStore:
    """A version's changelog.

    For a version that the driver folds, it must contain every event up to the source's end, at once or within the check's
    wait; for a version that is being built, every event up to the offsets committed in its checkpoint.
    """

    name = StoreName.CHANGELOG

    def __init__(self, session: CheckSession, target: Target, stored: StoredFrames) -> None:
        self._session = session
        self._stored = stored
        self._target = target
        self._cut = target.cut if target.version.is_active else self._committed()

    def _committed(self) -> Offsets:
        session, target = self._session, self._target
        checkpoint = checkpoint_path(session.settings.checkpoints, target.model.name, target.version.number)
        offsets = committed_offsets(session.spark, checkpoint, target.model.source_topic)
        if not offsets:
            message = (
                f"Version {target.version.number} of {target.model.name} has no committed batch in {checkpoint}: "
                "wait until its catch-up has committed one."
            )
            raise QualityError(message)
        return offsets

    @property
    def may_catch_up(self) -> bool:
        """Whether the stream driver folds the version, which it does not while the version is being built."""
        return self._target.version.is_active

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys without deleted ones."""
        return {str(self.name): self._newest().count()}

    def read(self) -> Reading:
        """Add the newest record of each key up to the topic's current end."""
        self._stored.add(self.name, self._stored.compared(self._newest()))
        return Reading((Replica(str(self.name), str(self.name), self._cut),))

    def current(self, late: DataFrame) -> DataFrame:
        """Return the newest records of these keys."""
        return of_pairs(self._newest(), late)

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return 0: only the age of the lake is limited."""
        del complete_up_to
        return 0.0

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    def _newest(self) -> DataFrame:
        changelog = changelog_of(self._session, self._target)
        until = source_ends(changelog.kafka, changelog.topic)
        newest = readable(changelog.read(self._session.spark, until)).where(~col(DELETED))
        return self._target.types.stored(lit(str(self.name)), newest)


def changelog_of(session: CheckSession, target: Target) -> Changelog:
    """Return the changelog of the version to check."""
    settings = session.settings
    columns = column_types(session.spark, table_fields(target.model))
    kafka, topic = settings.kafka_connection, target.version.changelog_topic
    return Changelog(kafka, settings.registry.connection, target.model, topic, columns)
