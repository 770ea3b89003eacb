"""The configuration that the stream driver is to have, and what has become of the last change of it, in files of FOLDLAKE_HOME.

`./foldlake up` writes the configuration, the stream supervisor (stack/launchers/stream_supervisor.py) the report. The file with the
configuration may contain secrets, and only its owner can read it.
"""

import json
import uuid
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from include.files import PRIVATE_FILE, file_lock, write_atomically
from include.settings import PREFIX, VARIABLES, Settings, folding_environment
from include.unknown_fields import read_record

# The lock is held for the time of a read and a write.
LOCK_WAIT_S = 5.0
# Each variable can also name a file with its value.
SETTING_NAMES = frozenset(
    f"{PREFIX}{variable.upper()}{ending}" for variable in VARIABLES for ending in ("", "_FILE")
)


class Handover(StrEnum):
    """What has become of a change."""

    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class DriverConfiguration:
    """All on which the driver depends.

    request: identifies the `up` that has written this; empty if a later one was rejected: no `up` waits for it.
    environment: the settings, by variable. declarations: digest of the files of declarations.
    """

    request: str
    environment: dict[str, str]
    declarations: str

    def is_like(self, other: "DriverConfiguration | None") -> bool:
        """Whether a driver with the other configuration would be the same."""
        return other is not None and (self.environment, self.declarations) == (
            other.environment,
            other.declarations,
        )

    def settings(self) -> Settings:
        """Return the settings; raises SettingsError when they are not valid."""
        values = {name.removeprefix(PREFIX).lower(): value for name, value in self.environment.items()}
        return Settings.of(**values)


@dataclass(frozen=True)
class NextConfiguration(DriverConfiguration):
    """The configuration for the driver of a stream supervisor that gets ready; the present one does not read it.

    supervisor: the file that defines this stream supervisor.
    """

    supervisor: str


@dataclass(frozen=True)
class HandoverReport:
    """What has become of the change with this request.

    at: ISO time, in UTC. error: why it has failed, in one line. output: the last lines of the new driver's output.
    is_new: whether the driver was replaced; False if it already had this configuration, or none ran.
    """

    request: str
    state: str
    at: str
    error: str = ""
    output: str = ""
    is_new: bool = False

    @classmethod
    def now(
        cls, request: str, state: Handover, *, error: str = "", output: str = "", is_new: bool = False
    ) -> "HandoverReport":
        """Return a report of this moment."""
        return cls(request, state, datetime.now(UTC).isoformat(), error, output, is_new)


def request(settings: Settings, declarations: str) -> DriverConfiguration:
    """Request a driver with these settings and declarations, and return this configuration."""
    wanted = DriverConfiguration(uuid.uuid4().hex, folding_environment(settings), declarations)
    with _lock(settings.home):
        _write(configuration_path(settings.home), wanted)
        _next_path(settings.home).unlink(missing_ok=True)
    return wanted


def read(home: Path) -> DriverConfiguration | None:
    """Return the configuration that was requested last; None if there is none."""
    return read_record(DriverConfiguration, configuration_path(home))


def request_for(settings: Settings, declarations: str, supervisor: str) -> DriverConfiguration:
    """Request a driver of a stream supervisor that is to replace the present one, and is defined by the file `supervisor`."""
    wanted = NextConfiguration(uuid.uuid4().hex, folding_environment(settings), declarations, supervisor)
    with _lock(settings.home):
        _write(_next_path(settings.home), wanted)
    return wanted


def read_next(home: Path, supervisor: str) -> DriverConfiguration | None:
    """Return the configuration for the driver of this stream supervisor; None if there is none."""
    found = read_record(NextConfiguration, _next_path(home))
    if found is None or found.supervisor != supervisor:
        return None
    return DriverConfiguration(found.request, found.environment, found.declarations)


def adopt_next(home: Path, supervisor: str) -> None:
    """Make the configuration for this stream supervisor, if there is one, the requested one: it has replaced the one before."""
    with _lock(home):
        wanted = read_next(home, supervisor)
        if wanted is not None:
            _write(configuration_path(home), wanted)
            _next_path(home).unlink()


def reject(home: Path, failed: str, kept: DriverConfiguration | None) -> None:
    """Make `kept` the requested configuration again, unless another one than `failed` has been requested by now."""
    with _lock(home):
        wanted = read(home)
        if wanted is None or wanted.request != failed:
            return
        if kept is None:
            configuration_path(home).unlink()
        else:
            _write(configuration_path(home), replace(kept, request=""))


def read_report(home: Path) -> HandoverReport | None:
    """Return what has become of the last change; None before the first one."""
    return read_record(HandoverReport, _report_path(home))


def rejected_change(home: Path) -> str | None:
    """Return when and why the last change was rejected; None if it was not."""
    report = read_report(home)
    return f"{report.at}: {report.error}" if report is not None and report.state == Handover.FAILED else None


def write_report(home: Path, report: HandoverReport) -> None:
    """Store the report. Only the stream supervisor may call this."""
    write_atomically(_report_path(home), json.dumps(asdict(report), indent=1))


def remove(home: Path) -> None:
    """Remove the configuration: no stream supervisor runs."""
    for path in (configuration_path(home), _next_path(home)):
        path.unlink(missing_ok=True)


def configuration_path(home: Path) -> Path:
    """Return the file with the configuration."""
    return home / "stream" / "configuration.json"


def _next_path(home: Path) -> Path:
    return home / "stream" / "next-configuration.json"


def _report_path(home: Path) -> Path:
    return home / "stream" / "handover.json"


def _lock(home: Path) -> AbstractContextManager[None]:
    return file_lock(configuration_path(home).with_suffix(".lock"), wait_s=LOCK_WAIT_S)


def _write(path: Path, configuration: DriverConfiguration) -> None:
    write_atomically(path, json.dumps(asdict(configuration), indent=1), mode=PRIVATE_FILE)
