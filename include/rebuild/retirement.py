"""Retires and abandons versions, and sweeps up versions that are due or whose run has ended."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from include.errors import FoldlakeError, KafkaUnavailableError
from include.rebuild.errors import CleanUpIncompleteError
from include.rebuild.grace_time import grace_left_s
from include.rebuild.version_cleanup import find_leftovers, remove_leftovers, remove_staging
from include.settings import KafkaConnection, Settings
from include.versions.registry import VersionRegistry, change, change_together, record_of
from include.versions.transitions import abandon, retire
from include.versions.version_record import UNFINISHED_STAGES, Stage, Version

LOG = logging.getLogger(__name__)


def previous_version(kafka: KafkaConnection, read_model: str, number: int) -> Version | None:
    """Return the version if it is a previous one; None when it was retired or is live again."""
    with VersionRegistry(kafka) as registry:
        version = record_of(registry, read_model).version(number)
    return version if version is not None and version.stage is Stage.PREVIOUS else None


def retire_version(settings: Settings, read_model: str, number: int) -> None:
    """Retire a previous version immediately and remove its leftovers.

    Raises VersionInUseError when it is live, NotHandedOverError when a rebuild is building it, VersionLockedError when
    the stream driver does not release it in time.
    """
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        change(registry, read_model, partial(retire, number=number))
    LOG.info("v%d of %s is retired", number, read_model)
    remove_leftovers(settings, read_model, number)


def abandon_version(settings: Settings, read_model: str, number: int) -> None:
    """Abandon a version that was never promoted and remove its leftovers; raises VersionInUseError when it was promoted."""
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        abandon_together(registry, {read_model: number})
    remove_leftovers(settings, read_model, number)


def abandon_together(registry: VersionRegistry, versions: Mapping[str, int]) -> None:
    """Abandon the versions of one rebuild, read model -> number, in one transaction; raises VersionInUseError if it was promoted."""
    change_together(registry, {name: partial(abandon, number=number) for name, number in versions.items()})
    for name, number in versions.items():
        LOG.info("v%d of %s is abandoned; the live version was not touched", number, name)


def abandon_run(settings: Settings, read_models: Sequence[str], run_id: str) -> dict[str, int]:
    """Abandon the versions of a run that failed; returns their numbers, by read model.

    The registry decides: promoted versions are not changed, regardless of the states of the run's tasks. A task may be killed after it has
    taken effect.
    """
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        records = registry.read()
        own = {name: records[name].of_run(run_id) for name in read_models if name in records}
        versions = {
            name: version.number
            for name, version in own.items()
            if version is not None and version.stage in (*UNFINISHED_STAGES, Stage.ABANDONED)
        }
        abandon_together(registry, versions)
    for name, number in versions.items():
        remove_leftovers(settings, name, number)
    return versions


def sweep(settings: Settings, has_ended: Callable[[str], bool]) -> list[str]:
    """Retire versions that are due, abandon those of ended runs, remove leftovers; returns a line for each version changed.

    has_ended: returns whether the rebuild with this run id has ended, or does not exist.

    Raises CleanUpIncompleteError, after processing all versions, when a version could not be cleaned up.
    """
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        records = registry.read()
    done: list[str] = []
    failed: list[str] = []
    for record in records.values():
        for version in record.versions:
            try:
                line = _clean_up(settings, record.read_model, version, has_ended)
            except KafkaUnavailableError:
                raise
            except FoldlakeError as error:
                # One version must not block the others.
                LOG.error("v%d of %s: %s", version.number, record.read_model, error)  # noqa: TRY400 - its message is complete
                failed.append(f"v{version.number} of {record.read_model}: {error}")
                continue
            if line:
                LOG.info("%s", line)
                done.append(line)
    if failed:
        raise CleanUpIncompleteError(
            f"{len(failed)} of the versions that are due could not be cleaned up; the others were. "
            + " ".join(failed)
        )
    return done


def _clean_up(
    settings: Settings, read_model: str, version: Version, has_ended: Callable[[str], bool]
) -> str | None:
    """Do what is due for one version; return a description of it, or None."""
    name = f"v{version.number} of {read_model}"
    if version.stage is Stage.PREVIOUS and grace_left_s(settings.home, read_model, version) <= 0.0:
        retire_version(settings, read_model, version.number)
        return f"retired {name}: its grace time has ended"
    if version.stage in UNFINISHED_STAGES:
        if not version.run_id or not has_ended(version.run_id):
            return None
        abandon_version(settings, read_model, version.number)
        return f"abandoned {name}: its run {version.run_id} has ended"
    if version.stage in (Stage.RETIRED, Stage.ABANDONED):
        if left := find_leftovers(settings, read_model, version.number):
            remove_leftovers(settings, read_model, version.number)
            return f"removed leftovers of {name} ({version.stage}): {', '.join(left)}"
    elif remove_staging(settings.lake_root, read_model, version.number):
        return f"removed the staging of {name}: it is {version.stage}"
    return None
