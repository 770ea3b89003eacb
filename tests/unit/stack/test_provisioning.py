"""The preparation of the tools: lock files, package sources, and readiness."""

import re
from pathlib import Path

import pytest

from stack.provisioning import layout as layout_module
from stack.provisioning.jars_lock import read_lock
from stack.provisioning.launcher import tools_directory
from stack.provisioning.layout import CHECKOUT, REQUIREMENTS, Layout
from stack.provisioning.pip_settings import translate


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


@pytest.mark.parametrize("lock", REQUIREMENTS.values(), ids=lambda path: path.name)
def test_every_requirement_is_pinned(lock: Path) -> None:
    lines = [line.partition("#")[0].strip() for line in lock.read_text().splitlines()]

    assert [line for line in lines if line and "==" not in line] == []


@pytest.mark.parametrize("lock", REQUIREMENTS.values(), ids=lambda path: path.name)
def test_no_lock_names_a_host(lock: Path) -> None:
    assert "://" not in lock.read_text()


def test_every_locked_file_has_a_digest_and_a_unique_path() -> None:
    files = read_lock()

    assert {file.jar_set for file in files} == {"kafka", "registry", "stream", "lake"}
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)
    assert len({(file.jar_set, file.name) for file in files}) == len(files)


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
