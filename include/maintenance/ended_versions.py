"""Removes retired and abandoned versions from the version registry, so that its records do not outgrow a message of Kafka."""

import logging
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.registry import VersionRegistry, change
from include.versions.version_lock import lock_paths
from include.versions.version_record import ENDED_STAGES, ReadModelVersions

LOG = logging.getLogger(__name__)


def forget_ended_versions(settings: Settings, kept: int) -> list[str]:
    """Remove all but the newest `kept` ended versions of each read model, and their lock files; return a line for each read model.

    A version with leftovers stays until the DAG `retirement` has removed these.
    """
    lines = []
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        for record in registry.read().values():
            numbers = frozenset(
                number
                for number in ended_before_newest(record, kept)
                if not find_leftovers(settings, record.read_model, number)
            )
            if not numbers:
                continue
            change(registry, record.read_model, partial(forget, numbers=numbers))
            for number in numbers:
                for lock in lock_paths(settings.home, record.read_model, number):
                    lock.unlink(missing_ok=True)
            lines.append(
                f"{len(numbers):,} ended versions of {record.read_model}, up to v{max(numbers)}: {len(record.versions) - len(numbers)} "
                "versions are left in the registry"
            )
            LOG.info("removed %s", lines[-1])
    return lines


def ended_before_newest(record: ReadModelVersions, kept: int) -> list[int]:
    """Return the numbers of the retired and abandoned versions except the newest `kept`, and except the record's last version.

    The last version stays because the next number is derived from it.
    """
    last = max(v.number for v in record.versions)
    ended = sorted(v.number for v in record.versions if v.stage in ENDED_STAGES and v.number != last)
    return ended[: max(0, len(ended) - kept)]


def forget(record: ReadModelVersions, numbers: Collection[int]) -> ReadModelVersions:
    """Remove these versions from the record if they have ended; the same object if there is none to remove."""
    last = max(v.number for v in record.versions)
    left = tuple(
        v
        for v in record.versions
        if v.number not in numbers or v.stage not in ENDED_STAGES or v.number == last
    )
    return record if len(left) == len(record.versions) else replace(record, versions=left)
