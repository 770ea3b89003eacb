"""The blocks of code of a page, in order.

A page states where its blocks are run, in a comment before or after its title: `<!-- examples: run on demo -->`. RUNS has the places and their tests. A comment
before a block states what differs: `<!-- example: run on orders -->`, `<!-- example: not run: why -->`, or `<!-- example: any output: why -->` if the output has
another form in a test.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from include.settings import CHECKOUT

# Where blocks are run -> the test that runs them.
RUNS = {
    "analysts": "tests/unit/demo/test_analysts.py",
    "declarations": "tests/integration/declarations/test_declaration_examples.py",
    "demo": "tests/integration/whole_stack/test_whole_demo_examples.py",
    "helm": "tests/integration/helm_chart/test_kubernetes_page.py",
    "lake": "tests/integration/lake/test_lake_readers.py",
    "logs": "tests/integration/logs/test_written_examples.py",
    "orders": "tests/integration/orders/test_written_examples.py",
    "pos": "tests/integration/pos/test_branches.py",
    "secured": "tests/integration/tls/test_security_page.py",
    "stream": "tests/integration/stream/test_stream_alone.py",
}
# Blocks in these languages do something; others are shown, such as a diagram.
EXECUTABLE = frozenset({"sh", "console", "sql", "python"})
PAGE_RUN = re.compile(r"^<!-- examples: run on ([\w-]+) -->$", re.MULTILINE)
BLOCK = re.compile(
    r"^(?P<comments>(?: *<!-- example: .+? -->\n+)*)"
    r"(?P<indent> *)```(?P<language>[\w-]+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
RUN_ON = re.compile(r"<!-- example: run on ([\w-]+) -->")
MARK = re.compile(r"<!-- example: (not run|any output): .+? -->")
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

    mark: `not run`, `any output` or empty. file: the name under which a reader saves it, or empty. run: the name in RUNS of the test that runs it, or empty.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    file: str = ""
    run: str = ""

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
    on_page = PAGE_RUN.search(text)
    found = []
    for match in BLOCK.finditer(text):
        indent, code = len(match["indent"]), match["text"]
        saved = SAVED.search(text[: match.start()])
        mark, run = MARK.search(match["comments"]), RUN_ON.search(match["comments"]) or on_page
        found.append(
            Block(
                page,
                text[: match.start("language")].count("\n") + 1,
                match["language"],
                re.sub(rf"^ {{{indent}}}", "", code, flags=re.MULTILINE) if indent else code,
                mark[1] if mark else "",
                saved[1] if saved else "",
                run[1] if run else "",
            )
        )
    return [block for block in found if not languages or block.language in languages]


def pages() -> list[str]:
    """Return the pages that readers follow. README is the last: the tutorial runs the demo that its requests need."""
    documentation = sorted((CHECKOUT / "docs").rglob("*.md"))
    followed = [page for page in documentation if page.parent.name in {"docs", "how-to"}]
    return [str(page.relative_to(CHECKOUT)) for page in (*followed, CHECKOUT / "README.md")]


def blocks_run(run: str) -> list[Block]:
    """Return the blocks of all pages that the test of this name in RUNS runs."""
    return [
        block
        for page in pages()
        for block in blocks(page)
        if block.run == run and block.mark != "not run" and (block.language in EXECUTABLE or block.file)
    ]
