"""`python -m tests.support.documentation.english [PAGE …]`: prints long sentences of the pages, and words that the house does not use, by file and line."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from include.settings import CHECKOUT

LONG, TOO_LONG, LONG_SHARE = 30, 40, 0.02
# Decisions are records of their time, and generated pages have the texts of the code.
LEFT_OUT = {"decisions", "reference", "vendor"}
BLOCK = re.compile(
    r"^( *)```.*?^\1```|<!--.*?-->|(?<=\n\n) {4}[^\n]*(?:\n {4}[^\n]*)*", re.MULTILINE | re.DOTALL
)
LINK, CODE, TAG = re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), re.compile(r"`+[^`]+`+"), re.compile(r"</?\w[^>]*>")
# Begins a unit: a list's item, a heading, a table's row or a blank line.
UNIT = re.compile(r"^\s*(?:[-*] |\d+\. |#|\||$)")
END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*[A-Z0-9])")
PROGRAM = r"(?:it|which|that|nodes?|drivers?|servers?|commands?|page|status|check|log|error|report|Kafka|Airflow|Spark)"
WORDS = re.compile(
    r"(?-i:^(?:What|Of|Whoever|Whatever) )(?=.*\.$)"
    rf"|\b{PROGRAM} (?:asks?|answers?|says?|knows?|wants?|tells?)\b"
    r"|\bwithout a word\b|\bup to where\b|\bstands? once\b|\bpays? for what\b|\bhas no successor\b|\bannounces\b"
    r"|\blook (?:a|the) \w+ up\b|\bstream[- ]keeper\b|\bEverything is well\b|\bfor ever\b",
    re.IGNORECASE,
)


def pages() -> list[Path]:
    """Return the pages that are checked."""
    own = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    found = sorted((CHECKOUT / "docs").rglob("*.md"))
    return own + [page for page in found if LEFT_OUT.isdisjoint(page.relative_to(CHECKOUT).parts)]


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a page, each with its line. Code counts as one word; each cell of a table is a unit of its own."""
    text = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = TAG.sub("", LINK.sub(r"\1", CODE.sub(lambda code: "X" + "\n" * code[0].count("\n"), text)))
    units: list[tuple[int, str]] = []
    ends_unit = True
    for number, line in enumerate(text.splitlines(), 1):
        if UNIT.match(line) or ends_unit:
            cells = line.strip("| ").split(" | ") if line.startswith("|") else [line]
            units += [(number, cell) for cell in cells]
        else:
            units[-1] = (units[-1][0], f"{units[-1][1]}\n{line}")
        ends_unit = line.startswith(("#", "|"))
    for number, unit in units:
        start = 0
        for end in [*(match.end() for match in END.finditer(unit)), len(unit)]:
            part = unit[start:end].lstrip()
            if sentence := re.sub(r"^(?:[-*#]+|\d+\.) ", "", " ".join(part.split())):
                yield number + unit[: end - len(part)].count("\n"), sentence
            start = end


def length(sentence: str) -> int:
    """Return the number of words."""
    return len(re.findall(r"\w[\w'.,-]*", sentence))


def findings(page: Path, longest: int = LONG) -> list[str]:
    """Return a line for each sentence that has more words, or a word that the house does not use, as compilers print errors."""
    name, found = page.relative_to(CHECKOUT).as_posix(), []
    for line, text in sentences(page.read_text(encoding="utf-8")):
        word, words = WORDS.search(text), length(text)
        if word or words > longest:
            found.append(f"{name}:{line}: {f'`{word[0].strip()}`' if word else f'{words} words'}: {text}")
    return found


def main(arguments: list[str]) -> None:
    """Print the findings of these pages, or of all."""
    for page in [CHECKOUT / name for name in arguments] or pages():
        print(*findings(page), sep="\n", end="\n" if findings(page) else "")  # noqa: T201 - a command


if __name__ == "__main__":
    main(sys.argv[1:])
