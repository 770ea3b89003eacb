"""The stages `retire` and `abandon`, and the sweep that repeats both where a run could not."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from include.errors import FoldlakeError, KafkaUnavailableError
from include.rebuild.errors import NotTidiedUpError
from include.rebuild.version_cleanup import remove_leftovers, remove_staging, still_there
from include.settings import Settings
from include.versions.registry import UNFINISHED_STAGES, Stage, Version, VersionRegistry
from include.versions.transitions import abandon, change, is_due, record_of, retire

LOG = logging.getLogger(__name__)


def previous_version(settings: Settings, read_model: str, number: int) -> Version | None:
    """Return the version while it is a previous one, or None: it was retired, or is live again."""
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        version = record_of(registry, read_model).version(number)
    return version if version is not None and version.stage is Stage.PREVIOUS else None


def retire_version(settings: Settings, read_model: str, number: int) -> None:
    """Retire a previous version at once and remove what it leaves.

    Raises VersionInUseError when it is live, NotHandedOverError when a rebuild is at work on it, VersionLockedError when
    the stream driver does not let go of it.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        change(registry, read_model, partial(retire, number=number))
    LOG.info("v%d of %s is retired", number, read_model)
    remove_leftovers(settings, read_model, number)


def abandon_version(settings: Settings, read_model: str, number: int) -> None:
    """Give up a version that is not promoted and remove what it leaves; raises VersionInUseError when it was."""
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        change(registry, read_model, partial(abandon, number=number))
    LOG.info("v%d of %s is abandoned: the live version was never touched", number, read_model)
    remove_leftovers(settings, read_model, number)


def abandon_run(settings: Settings, read_model: str, run_id: str) -> int | None:
    """Give up the version of a run that failed; returns its number, or None when there is nothing to give up.

    The registry decides: a version that was promoted is left alone, whatever the run's tasks say.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
        record = record_of(registry, read_model)
    mine = next((v for v in record.versions if v.run_id == run_id), None)
    if mine is None or mine.stage not in (*UNFINISHED_STAGES, Stage.ABANDONED):
        LOG.info("run %s has no version to abandon", run_id)
        return None
    abandon_version(settings, read_model, mine.number)
    return mine.number


def sweep(settings: Settings, run_is_over: Callable[[str], bool], now: datetime | None = None) -> list[str]:
    """Retire what is due, abandon what a run left behind, and remove leftovers; returns what was done, a line each.

    run_is_over: whether the rebuild with this run id has ended, or is unknown.

    Raises NotTidiedUpError at the end where something could not be done.
    """
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        records = registry.read()
    done: list[str] = []
    failed: list[str] = []
    for record in records.values():
        for version in record.versions:
            try:
                line = _tidy_up(settings, record.read_model, version, run_is_over, now or datetime.now(UTC))
            except KafkaUnavailableError:
                raise
            except FoldlakeError as error:
                # The others shall not wait for this one.
                LOG.error("v%d of %s: %s", version.number, record.read_model, error)  # noqa: TRY400 - it says all
                failed.append(f"v{version.number} of {record.read_model}: {error}")
                continue
            if line:
                LOG.info("%s", line)
                done.append(line)
    if failed:
        raise NotTidiedUpError(f"{len(failed)} could not be tidied up, all others are. " + " ".join(failed))
    return done


def _tidy_up(
    settings: Settings, read_model: str, version: Version, run_is_over: Callable[[str], bool], now: datetime
) -> str | None:
    """Do what is due for one version; returns what was done, None when nothing was."""
    name = f"v{version.number} of {read_model}"
    if is_due(version, now):
        retire_version(settings, read_model, version.number)
        return f"retired {name}: its grace time ended at {version.retire_after}"
    if version.stage in UNFINISHED_STAGES:
        if not version.run_id or not run_is_over(version.run_id):
            return None
        abandon_version(settings, read_model, version.number)
        return f"abandoned {name}: its run {version.run_id} has ended"
    if version.stage in (Stage.RETIRED, Stage.ABANDONED):
        if left := still_there(settings, read_model, version.number):
            remove_leftovers(settings, read_model, version.number)
            return f"removed what {name} ({version.stage}) had left: {', '.join(left)}"
    elif remove_staging(settings, read_model, version.number):
        return f"removed the staging of {name}: it is {version.stage}"
    return None
