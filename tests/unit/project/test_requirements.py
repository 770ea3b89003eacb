"""The versions and sizes in the documentation, the project file, the image and the scripts are those of one module."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest

from include.settings import CHECKOUT
from stack.provisioning.requirements import (
    DISK_GB,
    DOWNLOAD_GB,
    LONG_TERM_JAVAS,
    MEMORY_GB,
    NEWEST_JAVA,
    OLDEST_JAVA,
    OLDEST_PYTHON,
    PYTHONS,
    java_text,
    python_text,
)

# Syntax of the oldest `python3` that may read the script and the module it imports first.
OLD_PYTHON = (3, 6)


def text_of(page: str) -> str:
    """Return a page with each line break as a space."""
    return " ".join((CHECKOUT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/tutorial.md"])
def test_the_pages_name_the_supported_versions_and_sizes(page: str) -> None:
    text = text_of(page)

    assert f"Python {python_text()}" in text
    assert f"Java {java_text()}" in text
    assert f"{DISK_GB} GB of disk" in text
    assert f"{MEMORY_GB} GB of memory" in text
    assert "./foldlake doctor" in text


@pytest.mark.parametrize("page", ["README.md", "docs/docker.md", "cli/prepare.py"])
def test_the_size_of_the_download_is_the_same_everywhere(page: str) -> None:
    assert f"about {DOWNLOAD_GB} GB" in text_of(page)


def test_the_oldest_python_is_in_the_readme() -> None:
    assert f"({'.'.join(map(str, OLDEST_PYTHON))} or newer)" in text_of("README.md")


def test_the_project_file_names_the_oldest_python() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = ".".join(map(str, PYTHONS[0]))

    assert OLDEST_PYTHON[:2] == PYTHONS[0]
    assert project["project"]["requires-python"] == f">={oldest}"
    assert project["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert project["tool"]["mypy"]["python_version"] == oldest


def test_the_image_has_a_supported_python_and_java() -> None:
    dockerfile = text_of("Dockerfile")
    python, java = re.search(r"python:(\d+)\.(\d+)", dockerfile), re.search(r"openjdk-(\d+)-", dockerfile)

    assert python is not None
    assert java is not None
    assert (int(python[1]), int(python[2])) in PYTHONS
    assert OLDEST_JAVA <= int(java[1]) <= NEWEST_JAVA


def test_the_java_packages_to_install_are_supported() -> None:
    assert (LONG_TERM_JAVAS[0], LONG_TERM_JAVAS[-1]) == (OLDEST_JAVA, NEWEST_JAVA)


@pytest.mark.parametrize(
    "file", ["foldlake", "stack/provisioning/requirements.py", "stack/provisioning/__init__.py"]
)
def test_what_any_python_reads_first_has_old_syntax(file: str) -> None:
    ast.parse((CHECKOUT / file).read_text(encoding="utf-8"), feature_version=OLD_PYTHON)


def test_the_script_names_the_supported_versions() -> None:
    as_an_old_python = (
        "import runpy, shutil, sys; sys.version_info = (3, 8, 18, 'final', 0); shutil.which = lambda name: None;"
        "sys.argv = ['foldlake']; runpy.run_path('foldlake', run_name='__main__')"
    )

    done = subprocess.run(
        [sys.executable, "-c", as_an_old_python], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert f"foldlake needs Python {python_text()}; this is Python 3.8" in done.stderr
