"""Hooks of MkDocs: the site has the checkout's README, and links that work in the repository work on the site.

Runs in the environment of the site, which has MkDocs and nothing of Foldlake: imports only that and the standard library.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).resolve().parent.parent.parent
DOCS = CHECKOUT / "docs"
# Pages at the checkout's root -> their paths on the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
# The page of a folder, to which a link to the folder leads.
INDEX = "README.md"
# Files outside docs/ that pages link to are shown on pages of their own, below this folder.
SOURCE = "source"
LANGUAGES = {".avsc": "json", ".py": "python", ".java": "java", ".json": "json", ".yaml": "yaml"}
FENCE = re.compile(r"^( *)(```+|~~~+)")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
# Of HTML in a page: MkDocs does not convert these.
ATTRIBUTE = re.compile(r"(\b(?:src|srcset|href)=\")([^\"]+)(\")")
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) +")


def on_config(config: MkDocsConfig) -> None:
    """List the decisions in the navigation."""
    pages = sorted((DOCS / "decisions").glob("*.md"), key=lambda page: (page.name != INDEX, page.name))
    names = [f"decisions/{page.name}" for page in pages]
    config.nav = _replaced(config.nav, "decisions/*", names)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the checkout's root, and the files that pages link to."""
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(CHECKOUT / name)))
    for target in sorted({target for page in _pages() for target in _sources_of(page)}):
        shown = _source_page(target)
        uri = f"{SOURCE}/{_relative(target)}.md"
        files.append(File.generated(config, uri, content=shown, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:  # noqa: ANN401 - of MkDocs
    """Convert links and lists of a page from what code hosts read to what MkDocs reads."""
    path = _path_of(page.file.src_uri)
    if path is None:
        return markdown
    if date := _dates().get(_relative(path)):
        page.meta["revision_date"] = date
    return "\n".join(_converted(markdown.splitlines(), path, page.file.src_uri))


def _replaced(items: Any, name: str, by: list[str]) -> Any:  # noqa: ANN401 - lists and dictionaries of a YAML file
    if isinstance(items, list):
        return [_replaced(item, name, by) for item in items]
    if isinstance(items, dict):
        return {title: _replaced(item, name, by) for title, item in items.items()}
    return by if items == name else items


def _pages() -> Iterator[Path]:
    yield from (CHECKOUT / name for name in ROOT_PAGES)
    yield from sorted(DOCS.rglob("*.md"))


def _path_of(uri: str) -> Path | None:
    """Return the file of a page; None if these hooks have written the page."""
    roots = {own: CHECKOUT / name for name, own in ROOT_PAGES.items()}
    path = roots.get(uri, DOCS / uri)
    return path if path.exists() else None


def _relative(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def _source_page(path: Path) -> str:
    head = f"---\nsearch:\n  exclude: true\n---\n# {_relative(path)}\n\n"
    if path.is_dir():
        names = sorted(f"- `{one.name}{'/' if one.is_dir() else ''}`" for one in _shown(path))
        return head + "\n".join(names) + "\n"
    text = path.read_text(encoding="utf-8")
    return f"{head}````{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n````\n"


def _shown(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.name not in {"__pycache__", "__init__.py"})


def _prose(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is in a block of code."""
    fence = ""
    for line in lines:
        found = FENCE.match(line)
        yield line, bool(fence or found)
        if found and not fence:
            fence = found[2]
        elif found and found[2].startswith(fence):
            fence = ""


def _sources_of(page: Path) -> Iterator[Path]:
    for line, is_code in _prose(page.read_text(encoding="utf-8").splitlines()):
        for _, link, _ in () if is_code else LINK.findall(line):
            target = _target_of(link, page)
            if target and target.exists() and _uri_of(target).startswith(f"{SOURCE}/"):
                yield target


def _target_of(link: str, page: Path) -> Path | None:
    """Return the file or folder that a relative link leads to."""
    path = link.partition("#")[0]
    if not path or "://" in link or link.startswith("/"):
        return None
    return Path(os.path.normpath(page.parent / path))


def _uri_of(target: Path) -> str:
    """Return where the site has a file or a folder."""
    if target.is_dir() and (target / INDEX).exists():
        target = target / INDEX
    if target.is_relative_to(DOCS) and not target.is_dir():
        return target.relative_to(DOCS).as_posix()
    name = _relative(target)
    return ROOT_PAGES.get(name, f"{SOURCE}/{name}.md")


def _converted(lines: list[str], path: Path, uri: str) -> Iterator[str]:
    """Yield the lines with links of the site, a blank line before each list, and items' content indented by four spaces."""
    folder = os.path.dirname(uri)  # noqa: PTH120 - of a path on the site

    def link(found: re.Match[str]) -> str:
        target = _target_of(found[2], path)
        if target is None or not target.is_relative_to(CHECKOUT):
            return found[0]
        anchor = found[2].partition("#")[1:]
        return f"{found[1]}{os.path.relpath(_uri_of(target), folder or '.')}{''.join(anchor)}{found[3]}"

    before, indent, has_paragraphs = "", 0, False
    for line, is_code in _prose(lines):
        item = None if is_code else LIST_ITEM.match(line)
        if item:
            if before.strip() and (has_paragraphs or not indent):
                yield ""
            indent, has_paragraphs = len(item[0]), False
        elif not line.strip():
            has_paragraphs = True
        elif line.strip() and not line.startswith(" "):
            # A paragraph below a list, unless it continues the item's.
            indent = indent if before.strip() and not is_code else 0
        text = line if is_code else ATTRIBUTE.sub(link, LINK.sub(link, line))
        shift = 4 - indent if indent and not item and line.startswith(" " * indent) else 0
        yield " " * max(shift, 0) + text
        before = line


@cache
def _dates() -> dict[str, str]:
    """Return the day of the last commit of each file; nothing without git, or where it has only the newest commits."""
    git = ("git", "-C", str(CHECKOUT), "-c", "core.quotePath=false")
    try:
        if _output(*git, "rev-parse", "--is-shallow-repository").strip() != "false":
            return {}
        log = _output(*git, "log", "--format=//%cs", "--name-only", "--", "docs", *ROOT_PAGES)
    except (OSError, subprocess.CalledProcessError):
        return {}
    dates: dict[str, str] = {}
    day = ""
    for line in log.splitlines():
        if line.startswith("//"):
            day = line.removeprefix("//")
        elif line:
            dates.setdefault(line, day)
    return dates


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
