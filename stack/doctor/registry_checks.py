"""Checks of what `./foldlake prepare` downloads from: package index and Maven repository; and of the clock. Standard library only."""

import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path

from include.http_replies import without_credentials
from stack.doctor.finding import Finding, State
from stack.provisioning.installer import locked_packages
from stack.provisioning.layout import Layout, LockedFile, read_lock
from stack.provisioning.requirements import python_remedy

REQUEST_TIMEOUT_S = 10
PIP_TIMEOUT_S = 300
# A header has whole seconds, and a reply may come from a cache.
CLOCK_TOLERANCE_S = 5.0
# The client of Maven repositories, a small package, which `prepare` downloads first. It knows the address of Maven Central.
SMALL_PACKAGE = "jgo"
ADDRESSES = "jgo/constants.py"
MAVEN_CENTRAL = re.compile(r'^MAVEN_CENTRAL_URL\s*=\s*"([^"]+)"', re.MULTILINE)
INDEX = re.compile(r"Base URL of the Python Package Index \(default (\S+?)\)")

INDEX_CHECK, MAVEN_CHECK, CLOCK_CHECK = "package index", "Maven repository", "clock"


@dataclass
class Clock:
    """The differences between other servers' clocks and this machine's, in seconds; positive if this machine's is behind."""

    differences_s: list[float] = field(default_factory=list)

    def add(self, headers: Message, sent_s: float, received_s: float) -> None:
        """Note the time in a reply to a request between these two times (Unix, seconds)."""
        try:
            date_s = parsedate_to_datetime(headers["Date"]).timestamp()
            age_s = float(headers.get("Age", 0))
        except (TypeError, ValueError):
            return
        # Caches that send an age either keep the date of the first reply or replace it.
        candidates = (_beyond(moment, sent_s, received_s) for moment in (date_s, date_s + age_s))
        self.differences_s.append(min(candidates, key=abs))

    def check(self) -> Finding:
        """Return the finding: the clock is right if it agrees with one of the servers."""
        if not self.differences_s:
            return Finding(CLOCK_CHECK, State.SKIPPED, "no server has replied with its time")
        difference_s = min(self.differences_s, key=abs)
        if abs(difference_s) <= CLOCK_TOLERANCE_S:
            return Finding(CLOCK_CHECK, State.OK, f"within {CLOCK_TOLERANCE_S:g} s of other servers")
        found = f"{abs(difference_s):.0f} s {'behind' if difference_s > 0 else 'ahead of'} other servers"
        action = "Synchronize it (systemd-timesyncd, chrony). The ages of answers, retention and certificates depend on it."
        return Finding(CLOCK_CHECK, State.WARNING, found, f"within {CLOCK_TOLERANCE_S:g} s", action)


def _beyond(moment_s: float, sent_s: float, received_s: float) -> float:
    """Return how far a time of whole seconds is outside of the request's duration."""
    return min(moment_s + 1 - sent_s, 0.0) + max(moment_s - received_s, 0.0)


@contextmanager
def pip_of(layout: Layout) -> Iterator[tuple[Path | None, Finding]]:
    """Yield an interpreter that has pip, or None, and the finding of virtual environments.

    It is that of the bootstrap environment, if there is one, otherwise that of a temporary environment, made as `prepare` makes it.
    """
    check = "virtual environments"
    # An image has its stamp, but not the environment.
    if layout.is_ready("bootstrap") and layout.python("bootstrap").exists():
        yield layout.python("bootstrap"), Finding(check, State.OK, f"installed in {layout.root}")
        return
    with tempfile.TemporaryDirectory(prefix="foldlake-doctor-") as scratch:
        try:
            venv.create(scratch, with_pip=True, symlinks=True)
        except (subprocess.CalledProcessError, OSError, ImportError) as error:
            found = (
                "this Python cannot create one"
                if isinstance(error, subprocess.CalledProcessError)
                else str(error)
            )
            yield None, Finding(check, State.PROBLEM, found, action=f"{python_remedy()}.")
            return
        yield Path(scratch) / "bin" / "python", Finding(check, State.OK, "this Python can create one")


def check_registries(python: Path, mirror: str, clock: Clock, *, is_prepared: bool) -> Iterator[Finding]:
    """Download one small file from each registry, and note the times in the replies.

    python: an interpreter that has pip. mirror: FOLDLAKE_MAVEN_MIRROR. is_prepared: everything is downloaded, until the next upgrade.
    """
    severity = State.WARNING if is_prepared else State.PROBLEM
    with tempfile.TemporaryDirectory(prefix="foldlake-doctor-") as scratch:
        yield check_index(python, Path(scratch), clock, severity)
        base = mirror or _maven_central(Path(scratch))
    smallest = min(read_lock(), key=lambda file: file.size_bytes)
    yield check_maven(base, smallest, clock, severity)


def check_index(python: Path, folder: Path, clock: Clock, severity: State) -> Finding:
    """Download a small package into a folder, with pip and its configuration, and note the time in the index's reply."""
    package = next(line for line in locked_packages("bootstrap") if line.startswith(f"{SMALL_PACKAGE}=="))
    command = [
        "download",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--retries",
        "0",
        "--dest",
        str(folder),
        package,
    ]
    done = _pip(python, command)
    url = _index_url(python)
    _request(f"{url.rstrip('/')}/{SMALL_PACKAGE}/", clock)
    if done.returncode == 0:
        return Finding(INDEX_CHECK, State.OK, f"{without_credentials(url)} has {package}")
    action = (
        "Check the network, and pip's configuration: `index-url`, `proxy` and `cert` in pip.conf, or the variables "
        f"PIP_INDEX_URL, HTTPS_PROXY and PIP_CERT. pip's last message: {_last_line(done.stderr)}"
    )
    return Finding(
        INDEX_CHECK,
        severity,
        f"{package} cannot be downloaded from {without_credentials(url)}",
        action=action,
    )


def check_maven(base: str, file: LockedFile, clock: Clock, severity: State) -> Finding:
    """Request the headers of a file. base: the repository's URL; empty if it is unknown."""
    if not base:
        found = "its address is in a package that cannot be downloaded"
        return Finding(MAVEN_CHECK, State.SKIPPED, found)
    path = "/".join((*file.group.split("."), file.artifact, file.version, file.name))
    problem = _request(f"{base.rstrip('/')}/{path}", clock)
    shown = without_credentials(base)
    if not problem:
        return Finding(MAVEN_CHECK, State.OK, f"{shown} has {file.name}")
    action = "Check the network and HTTPS_PROXY, or set FOLDLAKE_MAVEN_MIRROR to the URL of a repository that is reachable."
    return Finding(MAVEN_CHECK, severity, f"{shown} does not deliver {file.name}: {problem}", action=action)


def _request(url: str, clock: Clock) -> str:
    """Request a page's headers, and return what fails; empty for success."""
    if not url.startswith(("http://", "https://")):
        return "not an HTTP URL"
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - checked above
    sent_s = time.time()
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as reply:  # noqa: S310 - checked above
            clock.add(reply.headers, sent_s, time.time())
    except urllib.error.HTTPError as error:
        clock.add(error.headers, sent_s, time.time())
        return f"HTTP status {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        return str(getattr(error, "reason", "") or error)
    return ""


def _index_url(python: Path) -> str:
    """Return the index of pip's configuration, without credentials: pip's help has it as the option's default."""
    shown = _pip(python, ["download", "--help"]).stdout
    found = INDEX.search(" ".join(shown.split()))
    return found[1] if found else ""


def _maven_central(folder: Path) -> str:
    """Return the address of Maven Central, from the package in a folder; empty without the package."""
    for wheel in folder.glob(f"{SMALL_PACKAGE}-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            found = MAVEN_CENTRAL.search(archive.read(ADDRESSES).decode())
        if found:
            return found[1]
    return ""


def _pip(python: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    environment = {**os.environ, "COLUMNS": "1000", "PIP_DEFAULT_TIMEOUT": str(REQUEST_TIMEOUT_S)}
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["none"])[-1][:300]
