"""The blocks of code of a page, in order.

A comment before a block says what a test cannot know: `<!-- example: not run: why -->`, or `<!-- example: any output: why -->` if the
output has another form in a test. A page whose blocks are run as a whole has `<!-- examples: run -->`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from include.settings import CHECKOUT

RUN = "<!-- examples: run -->"
BLOCK = re.compile(
    r"^(?:<!-- example: (?P<mark>not run|any output): (?P<why>.+?) -->\n+)?"
    r"(?P<indent> *)```(?P<language>[\w-]+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# `save this as `watch.py`:`
SAVED = re.compile(r"save this as `([\w./-]+)`:\s*$", re.IGNORECASE)
PROMPT = "$ "


@dataclass(frozen=True)
class Command:
    """A command of a block, and its output as the page shows it; None if the page shows none."""

    text: str
    output: str | None


@dataclass(frozen=True)
class Block:
    """A block of code: the page and the line where it begins, its language and text.

    mark: `not run`, `any output` or empty. file: the name under which a reader saves it, or empty.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[Command]:
        """Yield the commands of a block in a shell's language."""
        if self.language != "console":
            yield Command(self.text, None)
            return
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Command(command, None if self.mark == "any output" or not output.strip() else output)


def blocks(page: str, *languages: str) -> list[Block]:
    """Return the blocks of a page of the checkout that are in these languages, or in any."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        indent, code = len(match["indent"]), match["text"]
        saved = SAVED.search(text[: match.start()])
        found.append(
            Block(
                page,
                text[: match.start("language")].count("\n") + 1,
                match["language"],
                re.sub(rf"^ {{{indent}}}", "", code, flags=re.MULTILINE) if indent else code,
                match["mark"] or "",
                saved[1] if saved else "",
            )
        )
    return [block for block in found if not languages or block.language in languages]


def pages_to_run() -> list[str]:
    """Return the pages that are to be run as a whole. README is the last: the tutorial runs the demo that its requests need."""
    pages: list[Path] = [*sorted((CHECKOUT / "docs").rglob("*.md")), CHECKOUT / "README.md"]
    return [str(p.relative_to(CHECKOUT)) for p in pages if RUN in p.read_text(encoding="utf-8")]
