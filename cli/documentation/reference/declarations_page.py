"""The page of the package `foldlake`: what modules of declarations import, from the code's docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import foldlake
import foldlake.testing
from cli.documentation.reference.markdown import code, linked, one_line, page, sentence, table

ABOUT = """Modules of declarations import these names from the package `foldlake`, such as `from foldlake import ReadModel`. All arguments can be
given by name. [Adding a read model](../read-models.md) shows how they are used.

Other modules of Foldlake can change with any release."""
# `name: text`, `one, other: text`; members of enumerations are in capitals.
NAMES = r"(?:[a-z]\w*|[A-Z]{2,})(?:, (?:[a-z]\w*|[A-Z]{2,}))*"
ENTRY = re.compile(rf"^({NAMES}): (.+)$")
# An entry that does not begin a line.
SENTENCE_ENTRY = re.compile(rf"(?<=[.;]) (?={NAMES}: )")
# Fields of declarations that nobody gives.
SET_LATER = re.compile(r"set (?:on loading|by `reading`)\.?$")
TESTING = ("folded", "routed", "emitted")


@dataclass(frozen=True)
class Argument:
    """An argument of a class or a function, in the words of its source."""

    name: str
    type: str
    default: str


def declarations_page() -> str:
    """Return the page."""
    names = [name for name in foldlake.__all__ if callable(getattr(foldlake, name))]
    constants = [name for name in foldlake.__all__ if name not in names]
    rows = [(code(name), code(getattr(foldlake, name))) for name in constants]
    return page(
        "The package foldlake",
        ABOUT,
        *(_section(name, getattr(foldlake, name)) for name in names),
        "## Constants",
        table(("Name", "Value"), rows),
        "## foldlake.testing",
        sentence(one_line(inspect.getdoc(foldlake.testing) or "")),
        *(_section(name, getattr(foldlake.testing, name), level=3) for name in TESTING),
    )


def _section(name: str, value: object, level: int = 2) -> str:
    paragraphs, entries = parsed(inspect.getdoc(value) or "")
    arguments = list(_arguments(value))
    known = {one.name for one in arguments}
    extra = [
        f"- {', '.join(map(code, names))}: {_meaning(text)}"
        for names, text in entries.items()
        if not known & set(names)
    ]
    meanings = {name: text for names, text in entries.items() for name in names}
    rows = [
        (code(one.name), code(one.type), code(one.default), _meaning(meanings.get(one.name, "")))
        for one in arguments
        if one.name != "schema_folders" and not SET_LATER.search(meanings.get(one.name, ""))
    ]
    parts = [
        f"{'#' * level} {name}",
        *paragraphs,
        "\n".join(extra),
        table(("Argument", "Type", "Default", "Meaning"), rows),
    ]
    if isinstance(value, type):
        parts.append(table(("Member", "Meaning"), _members(value)))
    return "\n\n".join(linked(part) for part in parts if part)


def _meaning(text: str) -> str:
    return sentence(text[:1].upper() + text[1:].rstrip(";"))


def parsed(docstring: str) -> tuple[list[str], dict[tuple[str, ...], str]]:
    """Return the paragraphs of a docstring, and its entries `name: text` or `one, other: text` by their names."""
    paragraphs: list[str] = []
    entries: dict[tuple[str, ...], str] = {}
    for paragraph in docstring.split("\n\n"):
        text = textwrap.dedent(paragraph.removeprefix("Args:\n"))
        if text.startswith("Raises:"):
            paragraphs.append(one_line(text))
            continue
        current: tuple[str, ...] = ()
        plain: list[str] = []
        for line in chain.from_iterable(map(SENTENCE_ENTRY.split, text.splitlines())):
            if found := ENTRY.match(line):
                current = tuple(found[1].split(", "))
                entries[current] = found[2]
            elif current:
                entries[current] += f" {line.strip()}"
            else:
                plain.append(line.strip())
        paragraphs += [" ".join(plain)] if plain else []
    return paragraphs, entries


def _tree(value: object) -> ast.ClassDef | ast.FunctionDef:
    source = textwrap.dedent(inspect.getsource(value))  # type: ignore[arg-type]  # a class or a function
    found = ast.parse(source).body[0]
    if not isinstance(found, ast.ClassDef | ast.FunctionDef):
        raise TypeError(f"{value!r} is no class and no function.")
    return found


def _arguments(value: object) -> list[Argument]:
    """Return the arguments, as the source writes their types and defaults."""
    tree = _tree(value)
    if isinstance(tree, ast.FunctionDef):
        return list(_of_function(tree))
    own = next(
        (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None
    )
    if own is not None:
        return list(_of_function(own))
    found: dict[str, Argument] = {}
    for base in reversed(inspect.getmro(value)) if isinstance(value, type) else ():
        if base.__module__.startswith("include."):
            found |= {one.name: one for one in _of_class(_tree(base))}
    return [one for one in found.values() if one.type and "init=False" not in one.default]


def _of_class(tree: ast.ClassDef | ast.FunctionDef) -> Iterator[Argument]:
    """Yield the fields of a dataclass."""
    for statement in tree.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            kind, default = ast.unparse(statement.annotation), statement.value
            is_field = "ClassVar" not in kind
            yield Argument(
                statement.target.id,
                kind if is_field else "",
                "" if default is None else _shown(ast.unparse(default)),
            )


def _of_function(tree: ast.FunctionDef) -> Iterator[Argument]:
    spec = tree.args
    positional = [one for one in spec.args if one.arg != "self"]
    defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)
    for argument, default in [
        *zip(positional, defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]:
        kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
        yield Argument(argument.arg, kind, "" if default is None else _shown(ast.unparse(default)))


def _shown(default: str) -> str:
    """Return a default as its reader writes it: `{}` for `field(default_factory=dict)`."""
    if not default.startswith("field(") or "init=False" in default:
        return default
    factory = re.search(r"default_factory=(\w+)", default)
    plain = re.search(r"default=([^,)]+(?:\(\))?)", default)
    if factory:
        return {"dict": "{}", "tuple": "()", "list": "[]"}.get(factory[1], f"{factory[1]}()")
    return plain[1] if plain else ""


def _members(value: type) -> list[tuple[str, str]]:
    """Return the public methods and properties that a class of the page defines itself, for those who derive from it."""
    if not inspect.isabstract(value):
        return []
    return [
        (code(name), sentence(one_line(inspect.getdoc(member) or "")))
        for name, member in vars(value).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    ]
