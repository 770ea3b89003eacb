"""All generated pages, by their names in docs/reference."""

from collections.abc import Callable, Mapping
from pathlib import Path

from cli.documentation.reference.commands_page import commands_page
from cli.documentation.reference.dags_page import dags_page
from cli.documentation.reference.declarations_page import declarations_page
from cli.documentation.reference.http_pages import http_page, problems_page
from cli.documentation.reference.metrics_page import metrics_page
from cli.documentation.reference.settings_page import settings_page
from cli.documentation.reference.tables_page import tables_page
from include.files import write_atomically
from include.settings import CHECKOUT

FOLDER = CHECKOUT / "docs" / "reference"


def path_of(name: str) -> Path:
    """Return the file of a page."""
    return FOLDER / f"{name}.md"


def pages(application: object) -> Mapping[str, Callable[[], str]]:
    """Return the functions that make the pages, by name. application: the group of all commands."""
    return {
        "settings": settings_page,
        "commands": lambda: commands_page(application),
        "http": http_page,
        "problems": problems_page,
        "metrics": metrics_page,
        "dags": dags_page,
        "tables": tables_page,
        "declarations": declarations_page,
    }


def update(application: object) -> list[Path]:
    """Write the pages that differ from the code; returns them. application: the group of all commands."""
    changed = []
    FOLDER.mkdir(exist_ok=True)
    for name, content in pages(application).items():
        path, text = path_of(name), content()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
            changed.append(path)
    return changed
