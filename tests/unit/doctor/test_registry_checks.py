"""Package index, Maven repository and clock, against real servers on this machine."""

import hashlib
import re
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from include.settings import Settings
from stack.doctor.finding import State
from stack.doctor.registry_checks import Clock, check_index, check_maven, check_registries, pip_of
from stack.provisioning.installer import locked_packages
from stack.provisioning.layout import Layout, read_lock
from tests.support.temporary_stack import free_ports

BOOTSTRAP = Settings().tools / "bootstrap" / "bin" / "python"
PACKAGE = next(line for line in locked_packages("bootstrap") if line.startswith("jgo=="))
VERSION = PACKAGE.partition("==")[2]
JAR = min(read_lock(), key=lambda file: file.size_bytes)


class Server(ThreadingHTTPServer):
    """Serves pages from memory, with a clock that is wrong by `offset_s`, and with an age, if one is given."""

    offset_s = 0.0
    age_s: int | None = None
    pages: ClassVar[dict[str, bytes]] = {}

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Replies with the pages of its server."""

    server: Server

    def do_GET(self) -> None:
        """Send a page, or its headers."""
        page = self.server.pages.get(self.path)
        self.send_response_only(404 if page is None else 200)
        self.send_header("Date", formatdate(time.time() + self.server.offset_s, usegmt=True))
        if self.server.age_s is not None:
            self.send_header("Age", str(self.server.age_s))
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(page or b"")

    do_HEAD = do_GET  # noqa: N815 - the name of the method

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@contextmanager
def serving(pages: dict[str, bytes], offset_s: float = 0.0, age_s: int | None = None) -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.pages, server.offset_s, server.age_s = pages, offset_s, age_s  # type: ignore[misc]  # of this server only
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def index_pages(tmp_path: Path, central: str) -> dict[str, bytes]:
    """Return the pages of an index with a package that names a Maven repository, as the real one does."""
    wheel = tmp_path / f"jgo-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("jgo/constants.py", f'MAVEN_CENTRAL_URL = "{central}"\n')
        archive.writestr(
            f"jgo-{VERSION}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: jgo\nVersion: {VERSION}\n"
        )
        archive.writestr(
            f"jgo-{VERSION}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"jgo-{VERSION}.dist-info/RECORD", "")
    content = wheel.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    page = f'<a href="/files/{wheel.name}#sha256={digest}">{wheel.name}</a>'
    return {"/simple/jgo/": page.encode(), f"/files/{wheel.name}": content}


@pytest.fixture(autouse=True)
def own_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test sets counts, not this machine's configuration of pip or of a proxy."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in (
        "PIP_FIND_LINKS",
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_NO_INDEX",
        "HTTP_PROXY",
        "http_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


def jar_path() -> str:
    return "/".join(("", *JAR.group.split("."), JAR.artifact, JAR.version, JAR.name))


def test_index_repository_and_clock_are_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with serving({jar_path(): b"jar"}) as central, serving(index_pages(tmp_path, central.url)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        findings = list(check_registries(BOOTSTRAP, "", clock, is_prepared=False))
        urls = (f"{index.url}/simple has {PACKAGE}", f"{central.url} has {JAR.name}")

    assert [finding.state for finding in findings] == [State.OK, State.OK]
    assert tuple(finding.found for finding in findings) == urls
    assert clock.check().state is State.OK


@pytest.mark.parametrize(("is_prepared", "state"), [(False, State.PROBLEM), (True, State.WARNING)])
def test_an_index_without_the_package_is_a_problem_until_everything_is_installed(
    monkeypatch: pytest.MonkeyPatch, state: State, *, is_prepared: bool
) -> None:
    with serving({jar_path(): b"jar"}) as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        index, maven = check_registries(BOOTSTRAP, server.url, Clock(), is_prepared=is_prepared)

    assert index.state is state
    assert index.found.startswith(f"{PACKAGE} cannot be downloaded from http://127.0.0.1:")
    assert "PIP_INDEX_URL" in index.action
    assert "No matching distribution found for jgo" in index.action
    assert maven.state is State.OK


def test_no_credentials_of_an_index_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://reader:hidden-word@127.0.0.1:{port}/simple")

    finding = check_index(BOOTSTRAP, tmp_path, Clock(), State.PROBLEM)

    assert finding.state is State.PROBLEM
    assert "hidden-word" not in str(finding)


def test_without_the_package_maven_central_is_unknown_and_not_checked() -> None:
    assert check_maven("", JAR, Clock(), State.PROBLEM).state is State.SKIPPED


@pytest.mark.parametrize("mirror", ["http://127.0.0.1:{port}/maven", "ftp://127.0.0.1:{port}"])
def test_a_mirror_that_does_not_deliver_is_a_problem(mirror: str) -> None:
    (port,) = free_ports(1)

    finding = check_maven(mirror.format(port=port), JAR, Clock(), State.PROBLEM)

    assert finding.state is State.PROBLEM
    assert "FOLDLAKE_MAVEN_MIRROR" in finding.action


@pytest.mark.parametrize(
    ("offset_s", "found"),
    [(90.0, r"(89|90|91) s behind other servers"), (-90.0, r"(89|90|91) s ahead of other servers")],
)
def test_a_clock_that_differs_from_the_servers_is_a_warning(offset_s: float, found: str) -> None:
    clock = Clock()
    with serving({}, offset_s) as server:
        assert "HTTP status 404" in check_maven(server.url, JAR, clock, State.PROBLEM).found

    finding = clock.check()

    assert finding.state is State.WARNING
    assert re.fullmatch(found, finding.found)


def test_one_server_with_the_same_time_is_enough() -> None:
    clock = Clock()
    for offset_s in (-600.0, 0.0):
        with serving({}, offset_s) as server:
            check_maven(server.url, JAR, clock, State.PROBLEM)

    assert clock.check().state is State.OK


def test_the_date_of_a_cached_reply_is_as_old_as_the_reply() -> None:
    clock = Clock()
    with serving({}, offset_s=-300.0, age_s=300) as server:
        check_maven(server.url, JAR, clock, State.PROBLEM)

    assert clock.check().state is State.OK


def test_without_replies_the_clock_is_not_compared() -> None:
    assert Clock().check().state is State.SKIPPED


def test_without_the_installer_pip_is_that_of_a_temporary_environment(tmp_path: Path) -> None:
    with pip_of(Layout(tmp_path)) as (python, finding):
        assert finding.state is State.OK
        assert python is not None
        assert python.exists()

    assert not python.exists()
    assert list(tmp_path.iterdir()) == []
