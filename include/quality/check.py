"""The request and the result of a quality check, as values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from include.declarations.key_rule import REKEY_REMEDY
from include.errors import FoldlakeError, UnknownReadModelError
from include.quality.verified_tag import VerifiedMark
from include.versions.version_record import ENDED_STAGES, ReadModelVersions, Version
from include.words import plural

# At most this many failing keys are listed; all are counted.
LISTED_KEYS = 1_000
# At most this many keys whose state cannot be written are named; all are counted.
NAMED_UNWRITTEN = 5


class QualityError(FoldlakeError):
    """A check that could not run: nothing is known about the records."""


class FullCheckNeededError(FoldlakeError):
    """The verified records do not suffice, or must not be used: all keys must be checked. The message says why."""


class TableMissingError(QualityError):
    """A Delta table whose records are to be checked does not exist; the message says what writes it."""

    @classmethod
    def of(cls, path: str, store: str, read_model: str) -> "TableMissingError":
        """Return the error for a store."""
        remedy = f"./foldlake compact {read_model}" if store == StoreName.LAKE else "the stage build_staging"
        return cls(f"Table {path} does not exist yet: {remedy} writes it.")


class UncheckableError(QualityError):
    """A check that can never run for this read model: a retry would fail in the same way."""

    @classmethod
    def of_several_partitions(
        cls, read_model: str, partitions: Mapping[str, Sequence[int]], mixed: int, keys: int
    ) -> "UncheckableError":
        """Return the error for keys with events in several source partitions.

        Args:
            read_model: name of the read model.
            partitions: some of these keys, each with the partitions of its events.
            mixed: the number of such keys.
            keys: the number of all keys in the log.
        """
        named = "; ".join(
            f"key {key!r} in partitions {', '.join(map(str, found))}" for key, found in partitions.items()
        )
        further = f"; and {mixed - len(partitions):,} more" if mixed > len(partitions) else ""
        return cls(
            f"{read_model} cannot be checked: events of {mixed:,} of {plural(keys, 'key')} are in several source partitions "
            f"({named}{further}), so that the one offset in a record does not determine which of them it contains. "
            f"To have it checked, {REKEY_REMEDY} (docs/quality.md, Not checked)."
        )


class StoreName(StrEnum):
    """The stores that can be checked."""

    LAKE = "lake"
    NODES = "nodes"
    CHANGELOG = "changelog"
    STAGING = "staging"


class Mode(StrEnum):
    """Which keys are checked: every key, a sample, or those with events since they were verified."""

    FULL = "full"
    SAMPLE = "sample"
    INCREMENTAL = "incremental"


@dataclass(frozen=True)
class CheckRequest:
    """The read model, stores and mode to check; `version` None means the live version.

    from_log: read all events from the log, also those that an event table has.
    """

    read_model: str
    stores: tuple[StoreName, ...]
    mode: Mode
    run_id: str
    version: int | None = None
    from_log: bool = False


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one expectation in one store.

    checked: the number of rows it was evaluated over (keys; or partitions, replicas). failed: the number of rows that did not meet it.
    sample: some of those, each with its place. finding: an explanation, if the numbers are not enough.
    `place` names a replica: the lake's table, the changelog, or one partition on one query node.
    """

    store: StoreName
    expectation: str
    checked: int
    failed: int
    duration_s: float = 0.0
    sample: tuple[dict[str, str], ...] = ()
    finding: str = ""

    @property
    def passed(self) -> bool:
        """Whether every row met it."""
        return self.failed == 0


@dataclass(frozen=True)
class FailingKey:
    """One key that failed: which expectations, and the stored and the replayed record side by side, as text.

    A side is empty if it has no record.
    """

    store: StoreName
    place: str
    key: str
    expectations: tuple[str, ...]
    stored: dict[str, str | None]
    replayed: dict[str, str | None]


@dataclass(frozen=True)
class CheckResult:
    """The result of a whole check.

    started_at: ISO 8601. report: path of the HTML page; report_url: where a query node serves it.
    events: number replayed. keys: number compared; records: their copies in all replicas. all_keys: number of keys of the read model, where
        not all are compared; 0 otherwise.
    findings: further information for the operator.
    unwritten: the first keys without a record because their state cannot be written, with the reason; unwritten_total: their number.
    places: the replicas of each store, as text.
    full_check_reason: why all keys were checked although an incremental check was requested; empty if not. `request` has the mode that ran.
    verified: store -> how far it is verified now; empty unless the check passed and kept verified records.
    event_sources: where the events were read from, in words.
    engine: the one that compared the records, `duckdb` or `spark`. engine_reason: why Spark, where DuckDB might have checked; else empty.
    """

    request: CheckRequest
    version: int
    fold_revision: int
    started_at: str
    duration_s: float
    events: int
    keys: int
    expectations: tuple[ExpectationResult, ...]
    failing_keys: tuple[FailingKey, ...]
    failing_keys_total: int
    findings: tuple[str, ...] = ()
    report: str = ""
    report_url: str = ""
    places: tuple[str, ...] = field(default_factory=tuple)
    full_check_reason: str = ""
    verified: Mapping[str, VerifiedMark] = field(default_factory=dict)
    records: int = 0
    all_keys: int = 0
    unwritten: tuple[str, ...] = ()
    unwritten_total: int = 0
    event_sources: str = ""
    engine: str = ""
    engine_reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return all(expectation.passed for expectation in self.expectations)

    @property
    def verdict(self) -> str:
        """The outcome in one line."""
        what = f"{self.request.read_model} v{self.version}, {', '.join(self.request.stores)}"
        if self.request.mode is Mode.INCREMENTAL:
            what += ", incremental"
        elif self.full_check_reason:
            what += f", all keys, because {self.full_check_reason}"
        if self.passed:
            lines = "".join(
                f"; {line}" for line in (*self.findings, *self.unwritten_lines, *self.verified_lines)
            )
            return f"quality check passed: {what}: {self.compared}, {plural(self.events, 'event')} replayed{lines}"
        failed = [f"{e.store}: {e.expectation} ({e.failed:,})" for e in self.expectations if not e.passed]
        return f"quality check FAILED: {what}: {'; '.join([*self.findings, *failed, *self.unwritten_lines])}"

    @property
    def compared(self) -> str:
        """How many keys were compared, of how many, in how many copies: `911 keys, 3 copies each`."""
        keys = plural(self.keys, "key")
        if self.request.mode is Mode.SAMPLE and self.all_keys:
            keys = f"a sample of {self.keys:,} of {plural(self.all_keys, 'key')} ({self.keys / self.all_keys:.0%})"
        elif self.request.mode is Mode.INCREMENTAL:
            keys += " with new events"
        copies, rest = divmod(self.records, self.keys) if self.keys else (0, 0)
        if rest or not copies:
            return f"{keys}, {plural(self.records, 'record')}"
        return f"{keys}, {copies} {'copies' if copies > 1 else 'copy'} each"

    @property
    def verified_lines(self) -> list[str]:
        """How far each store is verified, a line each."""
        return [
            f"{store} verified up to the events of {_time(mark.cut_at_s)}, last in full at {_time(mark.full_at_s)}"
            for store, mark in self.verified.items()
        ]

    @property
    def unwritten_lines(self) -> tuple[str, ...]:
        """The keys without a record, on one line; no line if there are none."""
        if not self.unwritten_total:
            return ()
        named = ", ".join(self.unwritten)
        more = ", and others" if self.unwritten_total > len(self.unwritten) else ""
        keys = plural(self.unwritten_total, "key")
        return (f"{keys} without a record, because the state cannot be written: {named}{more}",)

    def to_json(self) -> str:
        """Return the result as JSON, for programs."""
        return json.dumps(asdict(self) | {"passed": self.passed, "verdict": self.verdict}, indent=1)

    @staticmethod
    def read(text: str) -> dict[str, Any]:
        """Parse the output of `to_json` as plain data."""
        fields: dict[str, Any] = json.loads(text)
        return fields


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds")


def checked_version(record: ReadModelVersions | None, request: CheckRequest) -> Version:
    """Return the version that a request names, or the live one.

    record: the version registry's, None if it has none of the read model. Raises QualityError when the version does not exist or has ended,
    UnknownReadModelError.
    """
    if record is None:
        raise UnknownReadModelError(
            f"The version registry has no {request.read_model!r}: start the stream driver on this Kafka first."
        )
    found = record.live if request.version is None else record.version(request.version)
    known = ", ".join(f"{version.number} ({version.stage})" for version in record.versions)
    if found is None:
        wanted = "live version" if request.version is None else f"version {request.version}"
        raise QualityError(f"{request.read_model} has no {wanted}; its versions: {known}.")
    if found.stage in ENDED_STAGES:
        raise QualityError(
            f"{request.read_model} v{found.number} is {found.stage}: its stores are removed. Its versions: {known}."
        )
    return found


def job_arguments(request: CheckRequest) -> list[str]:
    """Return the command-line arguments of a check (include/quality/check_run.py) for a request."""
    version = [] if request.version is None else ["--version", str(request.version)]
    return [
        *("--read-model", request.read_model),
        *version,
        *("--mode", request.mode.value),
        *("--stores", ",".join(request.stores)),
        *("--run-id", request.run_id),
        *(("--from-log",) if request.from_log else ()),
    ]


def check_id(run_id: str, read_model: str) -> str:
    """Return the id under which a run of the DAG `quality` checks a read model."""
    return f"{run_id}-{read_model}"
