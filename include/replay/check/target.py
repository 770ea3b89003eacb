"""The target of a check: one version of a read model, and the cut, which is the end offsets of the source when the check starts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.topic_state import source_state
from include.position import Offsets
from include.quality.check import CheckRequest, checked_version
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version

# The promotion in the lake waits for a running compaction, and is retried after a failure.
LAKE_FOLLOWS_WITHIN_S = 1800.0


class OtherEngineError(FoldlakeError):
    """DuckDB cannot check; the message says why."""


@dataclass(frozen=True)
class CheckTarget:
    """The target of a check.

    model: with the source and the start of the version. topic_id: Kafka's id of the source topic.
    cut: the source's end offsets at the start of the check; cut_at_s: its time (Unix s).
    lost: source partition -> first offset still in the log, for partitions that have lost the first events that the version folds.
    """

    settings: Settings
    model: ReadModel
    version: Version
    topic_id: str
    cut: Offsets
    cut_at_s: float
    lost: Mapping[int, int]

    @classmethod
    def of(cls, settings: Settings, request: CheckRequest) -> "CheckTarget":
        """Return the target of a request; raises QualityError, UnknownReadModelError, KafkaUnavailableError."""
        model = read_model(request.read_model, settings.declaration_folders)
        with VersionRegistry(settings.kafka_connection) as registry:
            version = checked_version(registry.read().get(request.read_model), request)
        model = model.reading(version.source_topic, version.starts)
        # Before the cut: an event below it may be newer than this.
        cut_at_s = time.time()
        state = source_state(settings.kafka_connection, model.source_topic)
        lost = {p: first for p, first in state.starts.items() if first > model.starts.of(p)}
        return cls(settings, model, version, state.topic_id, state.ends, cut_at_s, lost)

    def table_wait_s(self, request: CheckRequest, started: datetime) -> float:
        """Return for how long after the start of a check a table may contain another version than this one, before that is a fault.

        A promotion is one record in the version registry; the lake follows with a separate commit.
        """
        if request.version is not None:
            return 0.0
        wait_s = self.settings.quality.wait_s
        if not self.version.live_since:
            return wait_s
        since_s = (started - datetime.fromisoformat(self.version.live_since)).total_seconds()
        return max(wait_s, min(LAKE_FOLLOWS_WITHIN_S - since_s, LAKE_FOLLOWS_WITHIN_S))

    def ends(self) -> Offsets:
        """Return the current end offset of each partition of the source; raises KafkaUnavailableError."""
        return source_state(self.settings.kafka_connection, self.model.source_topic).ends
