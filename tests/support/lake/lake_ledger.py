"""A read model for one test, which writes its changelog, and the rows that its table should contain."""

from dataclasses import dataclass, field, replace
from decimal import Decimal

from deltalake import DeltaTable

from include.declarations.read_model import ReadModel
from include.kafka.topics import changelog_topic
from include.lake.tables import table_path
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage, Version, first_version
from tests.support.changelog_writer import ChangelogWriter


@dataclass
class LakeLedger:
    """A read model like `balance` under another name, so that tests share only Kafka.

    expected: key -> (amount, event_count) of the newest records that were appended.
    """

    settings: Settings
    name: str
    model: ReadModel = READ_MODEL
    expected: dict[str, tuple[Decimal, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Register version 1 as live."""
        self.model = replace(self.model, name=self.name)
        self.versions = VersionRegistry(self.settings.kafka_connection)
        self.versions.ensure_topic()
        self.versions.compare_and_set(first_version(self.name, 1), 0)
        self.writer = self._writer(1)

    @property
    def table(self) -> str:
        """The path of the read model's table."""
        return table_path(self.settings.lake_root, self.name)

    def put(self, key: str, cents: int, event_count: int, **further: object) -> None:
        """Append a key's newest record."""
        amount = Decimal(cents) / 100
        self.writer.write(key, amount, event_count, event_count - 1, **further)
        self.expected[key] = (amount, event_count)

    def put_old(self, key: str, cents: int, event_count: int) -> None:
        """Append an older record of the key after a newer one, like a restarted driver."""
        self.writer.write(key, Decimal(cents) / 100, event_count, event_count - 1)

    def delete(self, key: str) -> None:
        """Append a tombstone."""
        self.writer.write_raw(key.encode(), None)
        del self.expected[key]

    def flush(self) -> None:
        """Wait until the broker has acknowledged every record."""
        self.writer.flush()

    def make_new_version_live(self, number: int, fold_revision: int = 1) -> None:
        """Make a new version live, with an empty changelog; the live one becomes the previous one."""
        record = self.versions.read()[self.name]
        topic = changelog_topic(self.name, number)
        created = Version(number, Stage.LIVE, fold_revision, topic, "test", "")
        self._set(record, number, (*record.versions, created))
        self.writer = self._writer(number)
        self.expected = {}

    def recreate_changelog(self) -> None:
        """Delete the live version's changelog topic and create an empty one."""
        self.writer.delete_topic()
        self.writer = self._writer(self.writer.version)
        self.expected = {}

    def roll_back_to(self, number: int) -> None:
        """Make an earlier version live again."""
        record = self.versions.read()[self.name]
        self._set(record, number, record.versions)
        self.writer = self._writer(number)

    def rows(self) -> dict[str, tuple[Decimal, int]]:
        """Return the content of the table in the form of `expected`; fails if a key has two rows."""
        columns = DeltaTable(self.table).to_pyarrow_table(columns=["key", "amount", "event_count"])
        found = {row["key"]: (row["amount"], row["event_count"]) for row in columns.to_pylist()}
        assert len(found) == columns.num_rows
        return found

    def _set(self, record: ReadModelVersions, live: int, versions: tuple[Version, ...]) -> None:
        stages = {True: Stage.LIVE, False: Stage.PREVIOUS}
        changed = tuple(replace(v, stage=stages[v.number == live]) for v in versions)
        self.versions.compare_and_set(replace(record, versions=changed), record.revision)

    def _writer(self, version: int) -> ChangelogWriter:
        writer = ChangelogWriter(self.settings, version, self.model)
        writer.make_topics()
        return writer
