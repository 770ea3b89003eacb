"""The pages, headings, commands and settings in the documentation exist, and no file names a developer's machine."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.settings import CHECKOUT, PREFIX, VARIABLES
from include.settings.variables import FILE
from stack.provisioning.command_names import COMMANDS

PAGES = [
    CHECKOUT / "README.md",
    *sorted(page for page in (CHECKOUT / "docs").rglob("*.md") if "vendor" not in page.parts),
]
DECISIONS = CHECKOUT / "docs" / "decisions"
# Hosts that a tracked file may name in a URL: this machine, containers of docker-compose.yaml, documentation, and the namespaces of SVG,
# of JSON Schema and of Prometheus' operator.
LOOPBACK = {"127.0.0.1", "localhost"}
DOCUMENTATION = {
    "docs.astral.sh",
    "github.com",  # of a Go module
    "json-schema.org",
    "arrow.apache.org",
    "kafka.apache.org",
    "monitoring.coreos.com",
    "www.apache.org",
    "www.w3.org",
}
# As their authors published it.
VENDORED = {
    *(CHECKOUT / "query_api" / "http" / page / "vendor" for page in ("status", "contract")),
    CHECKOUT / "docs" / "assets" / "vendor",
}
URL_HOST = re.compile(r"https?://((?:[\w-]+\.)+[A-Za-z]{2,}|\d+(?:\.\d+){3})")
# Hosts without a scheme; `from a.net import b` is not one.
BARE_HOST = re.compile(
    r"(?<![\w.@/-])((?:[a-z0-9-]+\.)+(?:org|com|net))(?=[/\s\"'`),;]|$)(?! import)", re.MULTILINE
)
# Directories on developers' machines, which no tracked file may name.
MACHINE_PATH = re.compile(r"(?<![\w./}>)-])/(?:root|home|Users|work|mnt|tmp)/\w")


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    return [path for name in listed.split("\0") if name and (path := CHECKOUT / name).is_file()]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """Return a page without its code blocks, in which brackets are not links and # is not a heading."""
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that code hosts generate for a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the target and the anchor of each relative link."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            yield (page.parent / path if path else page), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_has_a_target(page: Path) -> None:
    dead = [
        f"{os.path.relpath(target, CHECKOUT)}#{anchor}"
        for target, anchor in links_of(page)
        if not target.exists() or (anchor and anchor not in anchors_of(target))
    ]

    assert dead == []


def test_every_promise_links_to_its_tests() -> None:
    """Another test finds the links without a target."""
    promises = re.split(r"^\*\*", prose_of(CHECKOUT / "docs" / "guarantees.md"), flags=re.MULTILINE)[1:]

    assert len(promises) > 50
    assert [
        promise for promise in promises if not re.search(r"^- Tests?: .*\(\.\./tests/", promise, re.MULTILINE)
    ] == []


def test_every_page_is_linked_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [PAGES[0]]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        for target, _ in links_of(page):
            # A link to a folder leads to all of its pages.
            pages = sorted(target.glob("*.md")) if target.is_dir() else [target]
            ahead += {p.resolve() for p in pages if p.suffix == ".md"} - reached

    assert set(PAGES) - reached == set()


def test_every_page_named_in_code_exists() -> None:
    named = {
        name
        for path in tracked_files()
        if path.suffix in {".py", ".yaml", ".toml", ".lock", ".md"}
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", text_of(path))
    }

    assert {name for name in named if not (CHECKOUT / name).is_file()} == set()


def test_every_decision_has_a_number_of_its_own_a_status_and_a_row_in_the_index() -> None:
    pages = sorted(DECISIONS.glob("[0-9]*.md"))
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((.+)\) \| (\S+) \|$", text_of(DECISIONS / "README.md"), re.MULTILINE
    )

    assert rows == [row_of(page) for page in pages]
    assert len({number for number, *_ in rows}) == len(rows)


def row_of(decision: Path) -> tuple[str, str, str, str]:
    """Return the number, title, file and date of a decision, as the index has them."""
    begin = re.match(r"# (\d+)\. (.+)\n\nStatus: accepted · (\d{4}-\d\d-\d\d)\b", text_of(decision))
    assert begin, f"{decision.name} does not begin with `# <number>. <title>` and `Status: accepted · <date>`"
    assert int(begin[1]) == int(decision.name[:4])
    return begin[1], begin[2], decision.name, begin[3]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_command_exists(page: Path) -> None:
    named = set(re.findall(r"\./foldlake ([a-z][\w-]*)", text_of(page)))

    assert named - COMMANDS.keys() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_setting_exists(page: Path) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in VARIABLES}
    # The marker that identifies the stack's processes is not a setting.
    named = set(re.findall(r"\bFOLDLAKE_[A-Z0-9_]*\*?", text_of(page))) - {"FOLDLAKE_STACK"}

    named = {name if name in known else name.removesuffix(FILE) for name in named}
    unknown = {name for name in named if not any(fits(name, setting) for setting in known)}

    assert unknown == set()


def fits(name: str, setting: str) -> bool:
    """Whether a name equals this setting, or is a pattern with a trailing star that matches it."""
    return setting.startswith(name[:-1]) if name.endswith("*") else setting == name


def test_no_tracked_file_names_a_private_host() -> None:
    found = {
        f"{path.relative_to(CHECKOUT)}: {host}"
        for path in tracked_files()
        if VENDORED.isdisjoint(path.parents)
        for pattern in (URL_HOST, BARE_HOST)
        for host in pattern.findall(_decoded(path))
        if host not in LOOPBACK | DOCUMENTATION and not host.endswith(".example")
    }

    assert found == set()


def test_no_tracked_file_names_a_path_on_a_developers_machine() -> None:
    found = {
        f"{path.relative_to(CHECKOUT)}: {line.strip()}"
        for path in tracked_files()
        for line in _decoded(path).splitlines()
        if MACHINE_PATH.search(line)
    }

    assert found == set()


def _decoded(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")
