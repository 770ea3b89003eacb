"""Writes positions of buoys to a changelog, as the stream driver does."""

from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path

from include.declarations.load import read_model
from include.position import Position
from include.settings import Settings
from query_api.lookup.routing import partition_of
from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import NodeStack

FOLDER = Path(__file__).parent / "read_models"
MODEL = "buoy-position"
RECORDS = f"/api/read-models/{MODEL}/records"
CHANGES = f"/api/read-models/{MODEL}/changes"


@dataclass
class Buoys:
    """The buoys of a version: `present` are those that were not removed, each with its latitude and longitude."""

    settings: Settings
    version: int = 1
    present: dict[str, tuple[float, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the topics."""
        model = read_model(MODEL, self.settings.declaration_folders)
        self.writer = ChangelogWriter(self.settings, self.version, model)
        self.writer.make_topics()

    def put(self, name: str, lat: float, lon: float, label: str = "") -> None:
        """Append a buoy's next state record."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.present[name] = (lat, lon)
        self.repeat(name, lat, lon, self.counts[name], label)

    def repeat(self, name: str, lat: float, lon: float, event_count: int, label: str = "") -> None:
        """Append a state record with this event count, as a driver does again after a crash."""
        value = self.writer.value(name, Decimal(0), event_count, event_count, lat=lat, lon=lon, label=label)
        self.writer.write_raw(name.encode(), value)

    def remove(self, name: str) -> None:
        """Append a removal with the position of the newest event."""
        del self.present[name]
        self.writer.remove(name, Position(0, 0, self.counts[name]))

    def one_in_each_partition(self, prefix: str) -> list[str]:
        """Return the names of buoys that are not present, one of each partition."""
        partitions = self.settings.topics.partitions
        found: dict[int, str] = {}
        for name in map(f"{prefix}-{{}}".format, count()):
            found.setdefault(partition_of(name.encode(), partitions), name)
            if len(found) == partitions:
                return list(found.values())
        raise AssertionError(prefix)

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self.writer.flush()

    def are_listed(self, nodes: NodeStack) -> bool:
        """Whether every node lists exactly the buoys that are present."""
        for port in nodes.ports:
            records = nodes.get(port, f"{RECORDS}?limit=1000").json()["records"]
            if {r["key"]: (r["state"]["lat"], r["state"]["lon"]) for r in records} != self.present:
                return False
        return True
