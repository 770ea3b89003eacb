"""The page of settings: their names and texts from `.env.example`, their types and defaults from the code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from cli.documentation.reference.markdown import code, codes, linked, page, sentence, table
from include.errors import FoldlakeError
from include.settings import CHECKOUT, PREFIX, SECRETS, VARIABLES, Settings
from include.settings.settings import JOB_SETTINGS, NODE_SETTINGS

ABOUT = """Settings are environment variables, or lines in the file `.env` of the checkout. The environment takes precedence.

With the ending `_FILE`, a variable has the path of a file with the value, such as a Docker secret. An empty variable counts as not set.
Times end in `_S` (seconds), `_MS` (milliseconds) or `_H` (hours), sizes in `_MB` (megabytes).

`./foldlake up` applies a changed setting. The column *Replaces* lists the running processes that it then [replaces](../operations.md#what-up-replaces):

- **all**: the stream driver and the query nodes, and a server whose own setting it is. Airflow's tasks read it when they start.
- **nodes**: the query nodes.
- **none**: no process; Airflow's tasks read it when they start. A setting of Airflow itself replaces Airflow."""
SECTION = re.compile(r"^# -- (.+?) -+$")
VARIABLE = re.compile(r"^(\w+)=(.*)$")
WORDS = {
    int: "integer",
    float: "number",
    bool: "true or false",
    str: "text",
    Path: "path",
    SecretStr: "secret",
}


@dataclass(frozen=True)
class Listed:
    """A setting in `.env.example`: its section, name, default and comment."""

    section: str
    name: str
    default: str
    effect: str


def settings_page() -> str:
    """Return the page."""
    found: dict[str, list[Listed]] = {}
    for one in listed_settings((CHECKOUT / ".env.example").read_text(encoding="utf-8")):
        found.setdefault(one.section, []).append(one)
    columns = ("Setting", "Type", "Default", "Effect", "Replaces")
    return page(
        "Settings",
        ABOUT,
        *(f"## {section}\n\n{table(columns, map(_row, listed))}" for section, listed in found.items()),
    )


def listed_settings(example: str) -> Iterator[Listed]:
    """Yield the settings of an example file; raises FoldlakeError for one without a comment above it."""
    section, comment = "", ""
    for line in example.splitlines():
        if found := SECTION.match(line):
            section, comment = found[1], ""
        elif line.startswith("# "):
            comment = f"{comment} {line.removeprefix('# ')}".strip()
        elif variable := VARIABLE.match(line):
            if not comment:
                raise FoldlakeError(
                    f"{variable[1]} in .env.example has no comment of its own above it. Write one."
                )
            yield Listed(linked_title(section), variable[1], variable[2], comment)
            comment = ""
        else:
            # A comment of its own is about the section.
            section = f"{section}\n\n{comment}" if section and comment else section
            comment = ""


def linked_title(section: str) -> str:
    """Return the title of a section without the page that it names."""
    return re.sub(r"[:,]? *\(?docs/[\w/-]+\.md\)?", "", section)


def _row(one: Listed) -> tuple[str, str, str, str, str]:
    name = one.name.removeprefix(PREFIX).lower()
    kind = "secret" if name in SECRETS else _type(_field(name))
    return f"`{one.name}`", kind, code(one.default), sentence(linked(one.effect)), _replaced(one.name)


def _replaced(name: str) -> str:
    if name in JOB_SETTINGS:
        return "none"
    return "nodes" if name in NODE_SETTINGS else "all"


def _field(variable: str) -> FieldInfo:
    group, field = VARIABLES[variable]
    owner: Any = Settings.model_fields[group].annotation if group else Settings
    found: FieldInfo = owner.model_fields[field]
    return found


def _type(field: FieldInfo) -> str:
    """Return a field's type in words, with its bounds."""
    limits = {
        name: value
        for part in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if (value := getattr(part, name, None)) is not None
    }
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    return ", ".join(
        [_named(field.annotation), *(f"{signs[name]} {value}" for name, value in limits.items())]
    )


def _named(annotation: Any) -> str:  # noqa: ANN401 - a type
    arguments = [one for one in get_args(annotation) if one not in {type(None), ...}]
    if get_origin(annotation) is Literal:
        return codes(arguments)
    if get_origin(annotation) is tuple:
        return f"{_named(arguments[0])}s, with commas" if arguments[0] in {int, str} else "list, with commas"
    if arguments:
        return _named(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return codes(filter(None, annotation))
    return WORDS.get(annotation, "text")
