"""The contract of the demo's read models, and the difference between two contracts as text."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

from include.declarations.catalog import Catalog
from include.declarations.load import load_catalog
from include.settings.systems import system_folder

SYSTEMS = ("logs", "orders", "pos")


def demo_catalog() -> Catalog:
    """Return the catalog of the read models that Foldlake comes with."""
    return load_catalog(tuple(system_folder(name) for name in SYSTEMS))


def lines_of(value: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON of any shape
    """Yield a line for each value in a document: the place, and the value."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from lines_of(one, f"{place} > {name}" if place else name)
    elif isinstance(value, list) and value:
        for one in value:
            # Without its number: what is inserted does not change the lines of what follows.
            label = one.get("name", one.get("$ref", "")) if isinstance(one, dict) else ""
            yield from lines_of(one, f"{place}[{label}]")
    else:
        yield f"{place} = {json.dumps(value, ensure_ascii=False)}"


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the lines that are only in one of two documents, with `-` or `+`, in the order of the documents."""
    compared = difflib.unified_diff(list(lines_of(before)), list(lines_of(after)), lineterm="", n=0)
    return [line for line in compared if line[:1] in {"-", "+"} and not line.startswith(("---", "+++"))]
