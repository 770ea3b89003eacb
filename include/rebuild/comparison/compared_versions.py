"""The two versions that a rebuild's comparison compares: up to which events, why the live one cannot be folded again, and the result as values."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from include.declarations.read_model import ReadModel
from include.declarations.rules.expression import Fields
from include.errors import FoldlakeError
from include.kafka.topic_state import source_state, topic_state
from include.lake.tagged_table import NewestTag
from include.lake.tags import CommitTag
from include.position import Offsets
from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import VersionStates
from include.rebuild.comparison.fold_source import FoldText, fold_code
from include.rebuild.comparison.state_difference import StateDifference
from include.settings import CheckEngine, KafkaConnection, Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import require_not_ended
from include.versions.version_record import Stage, Version
from include.words import plural

LOG = logging.getLogger("foldlake.compare_versions")


class NoStagingError(FoldlakeError):
    """The version has no staging table, whose states could be compared."""


@dataclass(frozen=True)
class HowCompared:
    """The engine of a comparison, and the source of its events; see `Comparison`."""

    engine: CheckEngine
    engine_reason: str = ""
    event_sources: str = ""


@dataclass(frozen=True)
class ComparedVersions:
    """A version with a staging table, and the live version; None if there is none.

    staging: the newest commit with a tag. until: the end offsets up to which the live version is folded. notes: what limits the comparison.
    no_replay_because: why the log cannot be folded as the live version does; empty if it can.
    """

    model: ReadModel
    version: Version
    live: Version | None
    staging: NewestTag[CommitTag]
    until: Offsets
    notes: tuple[str, ...] = ()
    no_replay_because: str = ""

    @classmethod
    def of(
        cls,
        settings: Settings,
        model: ReadModel,
        number: int,
        newest_staging: Callable[[], NewestTag[CommitTag] | None],
    ) -> Self | None:
        """Return what is compared; None for a version that has been promoted, and was compared before.

        Raises NoStagingError, KafkaUnavailableError, UnknownVersionError, VersionAbandonedError.
        """
        kafka = settings.kafka_connection
        with VersionRegistry(kafka) as registry:
            record = record_of(registry, model.name)
        stage = record.stage_of(number)
        if stage in (Stage.LIVE, Stage.PREVIOUS, Stage.RETIRED):
            LOG.info("v%d of %s is %s: it was compared before its promotion", number, model.name, stage)
            return None
        version = require_not_ended(record, number)
        staging = newest_staging()
        if staging is None:
            raise NoStagingError(
                f"v{number} of {model.name} has no staging table, with which the live version could be compared: the stage build_staging "
                "writes it."
            )
        found = cls(model, version, record.live, staging, staging.tag.complete_up_to)
        if record.live is None:
            return replace(found, notes=("There is no live version: every key counts as an added one.",))
        reason = _no_replay_because(kafka, model, record.live)
        return replace(found, no_replay_because=reason) if reason else found._with_same_events(kafka)

    def _with_same_events(self, kafka: KafkaConnection) -> Self:
        """Return the same; the live version is folded to where staging is, or to the end of another topic."""
        assert self.live is not None  # noqa: S101 - it is folded
        topics = [self.model.reading(one.source_topic).source_topic for one in (self.live, self.version)]
        if topics[0] == topics[1]:
            return self
        note = (
            f"The versions fold different topics, {topics[0]} and {topics[1]}: what was on only one of them when the comparison started is "
            "a difference, too."
        )
        return replace(self, until=source_state(kafka, topics[0]).ends, notes=(note,))

    def fields_of(self, version: Version) -> list[str]:
        """Return the names of the fields of a version's state."""
        return [field.name for field in self.model.state_fields(version.fold_revision)]

    def fold_texts(self, columns_of: Callable[[Fields], tuple[str, ...]]) -> tuple[FoldText, ...]:
        """Return the folds of both versions. columns_of: returns the columns of a fold that is not SQL, a line each."""
        both = (one for one in (self.live, self.version) if one is not None)
        return tuple(_fold_text(self.model, one.fold_revision, columns_of) for one in both)

    def write_report(
        self,
        settings: Settings,
        run_id: str,
        found: StateDifference,
        folds: tuple[FoldText, ...],
        started_s: float,
        how: HowCompared,
    ) -> None:
        """Write the report. started_s: when the comparison began, of the monotonic clock."""
        before = None if self.live is None else self._side(self.live, found.events[0], found.keys[0])
        after = self._side(self.version, found.events[1], found.keys[1])
        old, new = ([] if one is None else self.fields_of(one) for one in (self.live, self.version))
        comparison = replace(
            found.comparison(self.model.name, before, after),
            new_fields=() if before is None else tuple(name for name in new if name not in old),
            dropped_fields=tuple(name for name in old if name not in new),
            folds=folds,
            notes=self.notes,
            run_id=run_id,
            reason=self.version.reason,
            compared_at=datetime.now(UTC).isoformat(timespec="seconds"),
            duration_s=time.monotonic() - started_s,
            staging_version=self.staging.delta_version,
            engine=how.engine.value,
            engine_reason=how.engine_reason,
            event_sources=how.event_sources,
        )
        report.write(settings.home, comparison)
        LOG.info(
            "%s %s: %s changed, %d new, %d gone; took %.1f s. Report: %s",
            self.model.name,
            comparison.label,
            plural(comparison.changed, "key"),
            comparison.added,
            comparison.gone,
            comparison.duration_s,
            report.report_url(settings.reports_base_url, run_id),
        )

    def is_written(self, home: Path, run_id: str, folds: tuple[FoldText, ...]) -> bool:
        """Return whether the report is that of these versions, folds, and staging table."""
        found = report.read(home, run_id)
        if found is None:
            return False
        numbers = (found.before and found.before.number, found.after.number)
        return (numbers, found.folds, found.staging_version) == (
            (self.live and self.live.number, self.version.number),
            folds,
            self.staging.delta_version,
        )

    def _side(self, version: Version, events: int, keys: int) -> VersionStates:
        reading = self.model.reading(version.source_topic, version.starts)
        return VersionStates.of(version.number, version.fold_revision, reading, events, keys)


def _no_replay_because(kafka: KafkaConnection, model: ReadModel, version: Version) -> str:
    if version.fold_revision not in model.folds:
        return f"the module has no fold revision {version.fold_revision} any more"
    topic = model.reading(version.source_topic).source_topic
    log = topic_state(kafka, topic)
    if log is None:
        return f"topic {topic} does not exist any more"
    lost = [str(p) for p, first in log.starts.items() if first > version.starts.of(p)]
    return f"{topic} has lost its first events in partitions {', '.join(lost)}" if lost else ""


def _fold_text(model: ReadModel, revision: int, columns_of: Callable[[Fields], tuple[str, ...]]) -> FoldText:
    fold = model.folds.get(revision)
    if fold is None:
        return FoldText(revision, "")
    if isinstance(fold, Mapping):
        columns = tuple(f"{name} = {text}" for name, text in fold.items())
    else:
        columns = columns_of(fold)
    return FoldText(revision, fold_code(fold), columns)
