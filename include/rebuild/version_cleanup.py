"""Finds and removes a version's leftovers: topics, checkpoints, staging, verified records, and those of its emissions. May be killed and repeated at any point.

The query nodes remove their own stores once they read in the registry that it is retired or abandoned. The schemas of its state
records stay in the schema registry: other versions may share a schema's id, and ids are never reused.
"""

import errno
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from confluent_kafka import KafkaException

from include.declarations.kinds.emission import Emission
from include.declarations.load import load_catalog
from include.errors import FoldlakeError, KafkaUnavailableError
from include.kafka.topics import (
    ADMIN_TIMEOUT_S,
    POLL_INTERVAL_S,
    admin_client,
    changelog_topic,
    partition_count,
)
from include.lake.tables import staging_path, verified_file, verified_path
from include.settings import KafkaConnection, Settings
from include.stream.checkpoints import (
    checkpoint_path,
    compaction_checkpoint,
    emission_query_name,
    fold_rule_path,
    fold_sums_path,
    handover_path,
    log_note_path,
    written_note_path,
)
from include.versions.version_lock import emission_lock, staging_lock, version_lock
from include.waiting import retry, wait_for

LOG = logging.getLogger(__name__)
# The driver stops a query within seconds of reading the registry, later when its state is large.
LOCK_WAIT_S = 120.0
NOTES = (fold_rule_path, fold_sums_path, log_note_path, written_note_path, handover_path)
GONE = "UNKNOWN_TOPIC_OR_PART"
# Spark's maintenance thread may still upload the snapshot of a state store after its query has stopped.
LAST_SNAPSHOT_S = 60.0


class StorageUnreachableError(FoldlakeError):
    """This process cannot access a file system that Spark uses."""


def remove_leftovers(settings: Settings, read_model: str, number: int) -> None:
    """Remove all leftovers of a retired or abandoned version.

    Waits until its writer has stopped; raises VersionLockedError when the writer does not stop.
    """
    for part in _parts(settings, read_model, number):
        with ExitStack() as locks:
            for lock in part.locks:
                locks.enter_context(lock)
            _delete_topic(settings.kafka_connection, part.topic)
            for location in part.locations:
                if _remove(location):
                    LOG.info("removed %s", location)


def remove_staging(lake_root: str, read_model: str, number: int) -> bool:
    """Remove a version's staging table, which is not used after the promotion; return whether it existed."""
    return _remove(staging_path(lake_root, read_model, number))


def find_leftovers(settings: Settings, read_model: str, number: int) -> list[str]:
    """Return what is left of a version: topic names and paths."""
    parts = list(_parts(settings, read_model, number))
    admin = admin_client(settings.kafka_connection)
    left = [part.topic for part in parts if partition_count(admin, part.topic) is not None]
    return left + [path for part in parts for path in part.locations if _exists(path)]


class _Part(NamedTuple):
    """What one query of a version leaves, and the locks of what writes it."""

    locks: tuple[AbstractContextManager[None], ...]
    topic: str
    locations: list[str]


def _parts(settings: Settings, read_model: str, number: int) -> Iterator[_Part]:
    """Yield what a version's fold leaves, then what each of its emissions leaves."""
    home, checkpoints, root = settings.home, settings.checkpoints, settings.lake_root
    version = version_lock(home, read_model, number, wait_s=LOCK_WAIT_S)
    staging = staging_lock(home, read_model, number, wait_s=LOCK_WAIT_S)
    verified = verified_path(root, read_model, number), verified_file(root, read_model, number)
    tables = [staging_path(root, read_model, number), *verified]
    compaction = compaction_checkpoint(checkpoints, read_model, number)
    files = _files(checkpoint_path(checkpoints, read_model, number))
    yield _Part((version, staging), changelog_topic(read_model, number), [*files, compaction, *tables])
    for emission in load_catalog(settings.declaration_folders).outputs_of(Emission):
        if emission.read_model == read_model:
            lock = emission_lock(home, emission.name, number, wait_s=LOCK_WAIT_S)
            files = _files(f"{checkpoints}/{emission_query_name(emission.name, number)}")
            yield _Part((lock,), emission.version_topic(number), files)


def _files(checkpoint: str) -> list[str]:
    """Return a checkpoint, the notes beside it, and Hadoop's checksum of each note, on local disks."""
    folder = checkpoint.rpartition("/")[0]
    notes = [note(checkpoint) for note in NOTES]
    return [checkpoint, *notes, *(f"{folder}/.{note.rpartition('/')[2]}.crc" for note in notes)]


def _delete_topic(kafka: KafkaConnection, topic: str) -> None:
    # A reference for the whole function: the client's requests end with it.
    admin = admin_client(kafka)
    for future in admin.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S).values():
        try:
            future.result(ADMIN_TIMEOUT_S * 2)
        except KafkaException as error:
            if error.args[0].name() == GONE:
                return
            raise KafkaUnavailableError(
                f"Topic {topic} could not be deleted ({error}): check that the broker is up."
            ) from error
        except TimeoutError as error:
            raise KafkaUnavailableError(
                f"Topic {topic} could not be deleted within {ADMIN_TIMEOUT_S * 2} s: check that the broker is up."
            ) from error
        # The controller responds before the brokers have removed the topic.
        wait_for(
            lambda: partition_count(admin, topic) is None,
            timeout_s=ADMIN_TIMEOUT_S,
            poll_s=POLL_INTERVAL_S,
        )
        LOG.info("deleted topic %s", topic)


def _file_system(location: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415 - takes a second to import, and is rarely needed

    scheme = urlsplit(location).scheme
    if not scheme:
        location = Path(location).absolute().as_uri()
    # Hadoop, and so Spark, uses another name for this scheme than pyarrow.
    location = location.replace("s3a://", "s3://", 1)
    try:
        file_system, path = fs.FileSystem.from_uri(location)
    except (OSError, ValueError) as error:
        raise StorageUnreachableError(
            f"The leftovers of a version in {location} cannot be read or removed from here ({error}). Remove them manually, or use"
            " a mounted file system or S3."
        ) from error
    return file_system, path


def _exists(location: str) -> bool:
    from pyarrow import fs  # noqa: PLC0415

    file_system, path = _file_system(location)
    return bool(file_system.get_file_info(path).type != fs.FileType.NotFound)


def _remove(location: str) -> bool:
    return retry(
        lambda: _remove_once(location),
        retryable=_was_written_meanwhile,
        timeout_s=LAST_SNAPSHOT_S,
        poll_s=POLL_INTERVAL_S,
    )


def _was_written_meanwhile(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in {errno.ENOTEMPTY, errno.ENOENT}


def _remove_once(location: str) -> bool:
    from pyarrow import fs  # noqa: PLC0415

    file_system, path = _file_system(location)
    kind = file_system.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        return False
    if kind == fs.FileType.Directory:
        file_system.delete_dir(path)
    else:
        file_system.delete_file(path)
    return True
