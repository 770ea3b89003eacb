"""Prints the documents of `--json`, whose fields have the names that programs use everywhere (docs/api.md, Deprecations)."""

import sys
from typing import Annotated, Any

import typer

from include.nodes.field_names import FieldNames, renamed

NamesOption = Annotated[
    FieldNames,
    typer.Option(
        "--field-names",
        help="With --json: the names of fields. snake_case is deprecated: those of earlier releases.",
    ),
]
DEPRECATED = (
    "--field-names snake_case is deprecated: read the fields in camelCase (docs/api.md, Deprecations)."
)


def print_document(document: Any, names: FieldNames, *, indent: bool = True) -> None:  # noqa: ANN401 - JSON of any shape
    """Print one JSON document; a hint for the old names goes to the error output. Decimals keep their scale only without `indent`."""
    import json

    from query_api.http.json_text import dumps

    if names is FieldNames.SNAKE:
        print(DEPRECATED, file=sys.stderr)
    found = renamed(document, names)
    print(json.dumps(found, indent=2, default=str) if indent else dumps(found))
