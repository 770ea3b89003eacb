"""Markdown of generated pages, which reads the same on code hosts and on the site."""

import re
from collections.abc import Iterable, Sequence
from html import escape

NOTE = "<!-- Generated from the code: `./foldlake docs --update-reference` writes it. -->"
# Pages that texts of the code name.
PAGE_PATH = re.compile(r"(?<![\w/\[`])(?<!\]\()docs/([\w/-]+\.md)")


def page(title: str, about: str, *parts: str) -> str:
    """Return a page: its title, a paragraph about it, and its parts."""
    return "\n\n".join([f"# {title}", NOTE, about, *(part for part in parts if part)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, without the columns that are empty in every row; nothing without rows."""
    found = [[one_line(cell) for cell in row] for row in rows]
    if not found:
        return ""
    kept = [n for n, _ in enumerate(columns) if n == 0 or any(row[n] for row in found)]
    lines = [[columns[n] for n in kept], ["---"] * len(kept), *([row[n] for n in kept] for row in found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: object) -> str:
    """Return a text as code; empty for an empty text. A bar would end the cell of a table."""
    shown = str(text)
    if not shown:
        return ""
    return (
        f"<code>{escape(shown, quote=False).replace('|', '&#124;')}</code>" if "|" in shown else f"`{shown}`"
    )


def codes(texts: Iterable[object]) -> str:
    """Return several texts as code, separated by commas."""
    return ", ".join(map(code, texts))


def block(text: str, language: str = "") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def one_line(text: str) -> str:
    """Return a text for a cell of a table."""
    return " ".join(text.split())


def linked(text: str) -> str:
    """Return a text with a link for each page of the documentation that it names."""
    return PAGE_PATH.sub(r"[docs/\1](../\1)", text)


def sentence(text: str) -> str:
    """Return a text with a full stop at its end."""
    return text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."
