"""Examples of what analysts ask, with their answers, in a page of the documentation between two markers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb


@dataclass(frozen=True)
class Example:
    """A question, the query that answers it, and how its rows are shown: as Markdown."""

    title: str
    query: str
    shown: Callable[[Sequence[tuple[Any, ...]]], str]


def line_chart(title: str, unit: str, names: Sequence[object], lines: Sequence[Sequence[float]]) -> str:
    """Return a chart of Mermaid. names: of the points of each line, along the horizontal axis."""
    top = max(value for line in lines for value in line)
    body = [
        f'    title "{title}"',
        f"    x-axis [{', '.join(map(str, names))}]",
        f'    y-axis "{unit}" 0 --> {round(top * 1.1):d}',
        *(f"    line [{', '.join(f'{value:.1f}' for value in line)}]" for line in lines),
    ]
    return "\n".join(["```mermaid", "xychart-beta", *body, "```"])


def answers(connection: duckdb.DuckDBPyConnection, examples: Sequence[Example]) -> str:
    """Return every example with its query and its answer, as Markdown."""
    parts = []
    for example in examples:
        rows = connection.execute(example.query).fetchall()
        parts += [f"**{example.title}:**", f"```sql\n{example.query.strip()}\n```", example.shown(rows)]
    return "\n\n".join(parts)


def with_answers(page: str, text: str, block: str = "analysis") -> str:
    """Return the page with the text between the markers of a block, `<!-- <block>:begin -->` and `<!-- <block>:end -->`."""
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{text}\n{end}{after}"
