"""The status of the whole as one JSON document of sections.

A section is read in the background, at most once in an interval by all processes of a node, however many clients request it.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from include.boot_clock import boot_id, boot_s
from include.errors import FoldlakeError
from include.files import FileLock, write_atomically
from include.status.flow_status import StreamStatus
from include.status.measurement import read_stream_status
from include.stream.launch_failures import read as read_failed_launches
from query_api.history.samples import INTERVAL_S, read_columns
from query_api.status.lake import read_lake
from query_api.status.node_view import NodeView
from query_api.status.nodes import read_nodes, read_partitions
from query_api.status.quality import read_quality
from query_api.status.services import read_services
from query_api.status.versions import read_rebuilds, read_versions

# How often a request looks whether a section that it waits for has been read.
POLL_S = 0.02
# A request waits for a section that is older than its maximum age by more than this: nobody has asked for it lately.
GRACE_S = 5.0
# How long a request waits for sections that nobody has asked for lately. What is not there by then follows with the next request.
WAIT_S = 3.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SectionSource:
    """How a section is read.

    read: returns its data, as JSON values and times; any error becomes the section's.
    max_age_s: after this time a request has it read again; the request itself is answered with what is there.
    """

    name: str
    read: Callable[[], Any]
    max_age_s: float


class Section:
    """One section, shared by the processes of a node through a file in `folder`. Thread-safe.

    What was read last stays when a later reading fails, with its age, beside the error.
    """

    def __init__(self, source: SectionSource, folder: Path) -> None:
        self.name = source.name
        self._source = source
        self._path = folder / f"{source.name}.json"
        self._lock_path = folder / f"{source.name}.lock"
        self._is_reading = threading.Lock()
        # In this process: of a file that could not be written.
        self._unshared: dict[str, Any] | None = None

    def refresh(self) -> None:
        """Have the section read in the background if it is older than its maximum age."""
        if self._age_s(self._stored()) >= self._source.max_age_s:
            self._read_in_background()

    def current(self, wait_s: float) -> dict[str, Any]:
        """Return the section: `as_of` (ISO 8601), `age_s`, `error` and `data`; `data` and `as_of` are None before the first reading.

        wait_s: how long to wait for a reading if there was none, or none lately.
        """
        self.refresh()
        deadline_s = time.monotonic() + wait_s
        document = self._stored()
        while self._age_s(document) > self._source.max_age_s + GRACE_S and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
            # The previous reading may have stored its result without having ended: it then prevented this one.
            self.refresh()
            document = self._stored()
        if document is None:
            return {"as_of": None, "age_s": None, "error": None, "data": None}
        read_boot_s = document["read_boot_s"]
        return {
            "as_of": document["as_of"],
            "age_s": None if read_boot_s is None else round(boot_s() - read_boot_s, 1),
            "error": document["error"],
            "data": document["data"],
        }

    @staticmethod
    def _age_s(document: dict[str, Any] | None) -> float:
        """Return the time since the last attempt to read the section."""
        return float("inf") if document is None else boot_s() - document["tried_boot_s"]

    def _stored(self) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return self._unshared
        return document if document.get("boot_id") == boot_id() else None

    def _read_in_background(self) -> None:
        if self._is_reading.acquire(blocking=False):
            threading.Thread(target=self._read, name=f"status {self.name}", daemon=True).start()

    def _read(self) -> None:
        try:
            lock = FileLock(self._lock_path)
            if not lock.try_acquire():
                return  # another process reads it
            try:
                self._store(self._document())
            finally:
                lock.release()
        except (OSError, TypeError, ValueError) as error:
            log.warning("cannot share the section %s of the status: %s", self.name, error)
        finally:
            self._is_reading.release()

    def _document(self) -> dict[str, Any]:
        before = self._stored() or {"as_of": None, "read_boot_s": None, "data": None}
        now = {"boot_id": boot_id()}
        try:
            data = self._source.read()
        except FoldlakeError as error:
            return {**before, **now, "tried_boot_s": boot_s(), "error": str(error)}
        except Exception as error:  # the page says what it is, and the log has the rest
            log.exception("cannot read the section %s of the status", self.name)
            text = f"{type(error).__name__}: {error}. The node's log has the traceback."
            return {**before, **now, "tried_boot_s": boot_s(), "error": text}
        as_of = datetime.now(UTC).isoformat(timespec="milliseconds")
        read = {"as_of": as_of, "read_boot_s": boot_s(), "tried_boot_s": boot_s()}
        return {**now, **read, "error": None, "data": data}

    def _store(self, document: dict[str, Any]) -> None:
        text = json.dumps(document, default=_json_value)
        try:
            write_atomically(self._path, text)
        except OSError:
            self._unshared = json.loads(text)
            raise


def _json_value(value: object) -> object:
    if isinstance(value, StreamStatus):
        return value.to_json()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


class StatusDocument:
    """The sections of a node. Thread-safe."""

    def __init__(self, node: Mapping[str, Any], sources: Collection[SectionSource], folder: Path) -> None:
        self._node = dict(node)
        self._sections = {source.name: Section(source, folder) for source in sources}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sections, in their order."""
        return tuple(self._sections)

    def read(self, names: Collection[str]) -> dict[str, Any]:
        """Return the document with the sections of these names."""
        chosen = [section for name, section in self._sections.items() if name in names]
        for section in chosen:
            section.refresh()
        end_s = time.monotonic() + WAIT_S
        found = {section.name: section.current(max(0.0, end_s - time.monotonic())) for section in chosen}
        return {**self._node, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), "sections": found}


@dataclass(frozen=True)
class FailedLaunches:
    """Launches of the stream driver that failed one after the other. since: the first one, in ISO 8601."""

    failures: int
    since: str
    last_error: str


@dataclass(frozen=True)
class StreamEntry(StreamStatus):
    """The status of the whole stream. pace: of the setting FOLDLAKE_STREAM_PACE. failed_launches: None if there are none."""

    pace: str = ""
    failed_launches: FailedLaunches | None = None


def _stream(view: NodeView) -> StreamEntry:
    """Return the status of the stream; raises KafkaUnavailableError."""
    view.require_kafka()
    failed = read_failed_launches(view.settings.home)
    found = read_stream_status(view.settings)
    return StreamEntry(
        found.flows,
        found.sources,
        found.building,
        view.settings.stream.pace,
        None if failed is None else FailedLaunches(failed.failures, failed.since, failed.last_error),
    )


@dataclass(frozen=True)
class HistoryEntry:
    """What this node has measured in the last hour. models: read model -> field of a sample -> its values."""

    interval_s: int
    models: dict[str, dict[str, list[Any]]]


def _history(view: NodeView) -> HistoryEntry:
    return HistoryEntry(INTERVAL_S, read_columns(view.settings.store_dir))


# What costs little is read every second. Reading the stream opens connections to Kafka and takes about a second; the tables' logs are
# on a disk, or on a file system elsewhere.
_READ = (
    ("services", read_services, 3.0),
    ("nodes", read_nodes, 1.0),
    ("versions", read_versions, 2.0),
    ("rebuilds", read_rebuilds, 3.0),
    ("stream", _stream, 5.0),
    ("partitions", read_partitions, 1.0),
    ("lake", read_lake, 15.0),
    ("quality", read_quality, 5.0),
    ("history", _history, 5.0),
)


def section_types() -> dict[str, Any]:
    """Return the type of the data of each section."""
    return {name: get_type_hints(read)["return"] for name, read, _ in _READ}


def sources(view: NodeView) -> tuple[SectionSource, ...]:
    """Return the sections of a node's status."""
    return tuple(SectionSource(name, partial(read, view), max_age_s) for name, read, max_age_s in _READ)
