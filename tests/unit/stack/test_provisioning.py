"""The preparation of the tools: lock files, package sources, and readiness."""

import hashlib
import re
import sys
import tarfile
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from include.settings import Settings
from stack.provisioning import installer
from stack.provisioning import layout as layout_module
from stack.provisioning.installer import (
    InstallationError,
    install,
    installed_packages,
    locked_packages,
    translate,
)
from stack.provisioning.jars import unpack
from stack.provisioning.launcher import tools_directory
from stack.provisioning.layout import CHECKOUT, REQUIREMENTS, Layout, read_lock


def test_an_environment_is_ready_only_for_its_own_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text("a==1\n")
    monkeypatch.setitem(layout_module.REQUIREMENTS, "main", lock)
    layout = Layout(tmp_path / "tools")

    assert not layout.is_ready("main")
    layout.mark_ready("main")
    assert layout.is_ready("main")
    lock.write_text("a==2\n")
    assert not layout.is_ready("main")


def test_an_environment_is_not_ready_while_it_is_installed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.mark_ready("jars")

    layout.mark_unready("jars")

    assert not layout.is_ready("jars")


@pytest.mark.parametrize("environment", REQUIREMENTS)
def test_every_requirement_is_pinned(environment: str) -> None:
    requirements = locked_packages(environment)

    assert requirements
    assert [line for line in requirements if not re.match(r"[\w.-]+(\[[\w,.-]+\])?==[\w.+!]+", line)] == []


@pytest.mark.parametrize("lock", REQUIREMENTS.values(), ids=lambda path: path.name)
def test_every_requirement_has_a_digest(lock: Path) -> None:
    lines = lock.read_text().splitlines()

    first_digests = [after for line, after in pairwise(lines) if "==" in line]

    assert [line for line in first_digests if not re.match(r"    --hash=sha256:[0-9a-f]{64}", line)] == []


@pytest.fixture
def tiny_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is the only one that pip and uv find; returns its file."""
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            "tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/RECORD,,\n")
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(installer, "uv_environment", lambda _: {})
    return wheel


def install_tiny(package: Path, digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = package.parent / "requirements.txt"
    lock.write_text(f"tiny==1.0 \\\n    --hash=sha256:{digest}\n")
    monkeypatch.setitem(REQUIREMENTS, "main", lock)
    layout = Layout(package.parent / "tools")
    layout.root.mkdir()
    (layout.root / "bootstrap").symlink_to(Settings().tools / "bootstrap")
    install(layout, "main", sys.executable)


def test_package_with_the_digest_of_the_lock_file_is_installed(
    tiny_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_tiny(tiny_package, hashlib.sha256(tiny_package.read_bytes()).hexdigest(), monkeypatch)

    assert installed_packages(Layout(tiny_package.parent / "tools"), "main") == 1


def test_package_with_another_digest_is_refused_by_uv_and_by_pip(
    tiny_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InstallationError) as refused:
        install_tiny(tiny_package, "0" * 64, monkeypatch)

    with_uv, _, with_pip = str(refused.value).partition("\npip: ")
    assert "Hash mismatch" in with_uv
    assert "DO NOT MATCH THE HASHES" in with_pip
    assert installed_packages(Layout(tiny_package.parent / "tools"), "main") == 0


@pytest.mark.parametrize("lock", REQUIREMENTS.values(), ids=lambda path: path.name)
def test_no_lock_names_a_host(lock: Path) -> None:
    assert "://" not in lock.read_text()


def test_every_locked_file_has_a_digest_and_a_unique_path() -> None:
    files = read_lock()

    assert {file.jar_set for file in files} == {"kafka", "registry", "stream", "lake"}
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)
    assert len({(file.jar_set, file.name) for file in files}) == len(files)


def test_a_benchmarks_lock_has_digests_and_a_set_of_its_own() -> None:
    locks = sorted((CHECKOUT / "benchmarks").glob("*/jars.lock"))
    files = [file for lock in locks for file in read_lock(lock)]

    assert locks
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)
    # `./foldlake` removes what it does not know from the directories of its own sets.
    assert {file.jar_set for file in files}.isdisjoint(file.jar_set for file in read_lock())


def test_each_spark_has_its_own_connectors() -> None:
    versions = {
        file.jar_set: file.version for file in read_lock() if file.artifact.startswith("spark-sql-kafka")
    }

    assert versions == {"stream": "4.2.0", "lake": "4.1.1"}


def test_pip_settings_are_converted_for_uv() -> None:
    config = (
        "global.index-url='https://index.example/simple'\n"
        "global.extra-index-url='https://one.example/simple https://two.example/simple'\n"
        ":env:.find-links='/wheels /more'\n"
        "global.cert='/etc/ca.pem'\n"
        "list.format='columns'\n"
        "global.no-color='1'\n"
    )

    assert translate(config) == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


def test_the_tools_directory_is_read_from_the_environment_then_from_the_env_file(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("# FOLDLAKE_TOOLS=/no\nFOLDLAKE_TOOLS='/from/file'\n")

    assert tools_directory({"FOLDLAKE_TOOLS": "/from/environment"}, env_file) == Path("/from/environment")
    assert tools_directory({}, env_file) == Path("/from/file")
    assert tools_directory({}, tmp_path / "none") == CHECKOUT / ".foldlake" / "tools"


@pytest.mark.parametrize("has_filters", [True, False], ids=["3.11.4 and later", "3.11.2"])
def test_an_archive_is_unpacked_by_each_python_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_filters: bool
) -> None:
    if not has_filters:
        extracted = tarfile.TarFile.extractall

        def extractall(archive: tarfile.TarFile, path: Path) -> None:
            extracted(archive, path, filter="fully_trusted")

        monkeypatch.delattr(tarfile, "data_filter")
        monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    (tmp_path / "a.txt").write_text("content")
    with tarfile.open(tmp_path / "one.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.txt", "one/a.txt")

    unpack(tmp_path / "one.tar.gz", tmp_path / "unpacked")

    assert (tmp_path / "unpacked" / "one" / "a.txt").read_text() == "content"
