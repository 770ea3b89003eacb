"""The files of a new declaration: a package with its module and its schema, a test, and a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from cli.scaffold.schemas import emitted_fields, emitted_schema, example, literal, routed_schema
from include.declarations.catalog import Catalog
from include.declarations.event_types.event_schemas import READ_MODELS, event_schema
from include.declarations.load import model_of
from include.declarations.read_model import require_name
from include.errors import FoldlakeError
from include.settings import CHECKOUT

TEMPLATES = files("cli.scaffold") / "templates"


@dataclass(frozen=True)
class NewDeclaration:
    """The files of a declaration that does not exist yet: path -> text. test: the path of its test."""

    name: str
    test: Path
    texts: Mapping[Path, str] = field(default_factory=dict)

    def write(self) -> None:
        """Write the files; raises FoldlakeError, and writes nothing, if one of them exists."""
        existing = [path for path in self.texts if path.exists()]
        if existing:
            raise FoldlakeError(f"{existing[0]} exists already: choose another name, or remove it.")
        for path, text in self.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Wanted:
    """What is to be declared.

    read_model: of an emission. source_topic, event_type: what a route or another flow reads. key: the field that is the new key of a route's
    outputs; empty: the key of the events.
    """

    kind: str
    name: str
    read_model: str = "balance"
    source_topic: str = "balance"
    event_type: str = "FundsAdded"
    key: str = ""

    @property
    def own_type(self) -> str:
        """The beginning of the name of its own event type."""
        return "".join(part.capitalize() for part in self.name.split("-"))


class _Parts(NamedTuple):
    """The fields of the templates of a kind, and the event type that the declaration brings: its name and its schema.

    module: name of the module in a package; empty: the word for the kind. templates: of module, test and page, unless they are files.
    """

    fields: Mapping[str, str]
    event_type: str = ""
    schema: str = ""
    module: str = ""
    templates: tuple[str, ...] = ()


class Scaffold:
    """Makes declarations in a folder, beside those of a catalog; schema_folders: where else event schemas are."""

    def __init__(self, folder: Path, catalog: Catalog, schema_folders: tuple[Path, ...]) -> None:
        self._folder = folder
        self._catalog = catalog
        self._schema_folders = schema_folders
        own = {word: one for word, one in catalog.kinds.items() if one.template and one.test_template}
        # The word for a kind -> how the fields of its templates are found.
        self._kinds: Mapping[str, Callable[[Wanted], _Parts]] = {
            "read-model": _read_model,
            "route": self._route,
            "emission": self._emission,
            **dict.fromkeys(sorted(own), self._of_kind),
        }

    def new(self, wanted: Wanted) -> NewDeclaration:
        """Return a declaration: a package if it brings an event type, or else a module. Raises FoldlakeError if it cannot work."""
        kind, name = wanted.kind, wanted.name
        if kind not in self._kinds:
            raise FoldlakeError(f"There is no kind {kind!r}. Known kinds: {', '.join(self._kinds)}.")
        self._require_new(kind, name)
        parts = self._kinds[kind](wanted)
        package = self._folder / name.replace("-", "_")
        module = package / f"{parts.module or kind}.py" if parts.schema else package.with_suffix(".py")
        schema = package / "schemas" / f"{parts.event_type}.avsc"
        test, page = self._beside(f"test_{package.name}.py", f"{name}.md")
        shown = {"module": module, "test": test, "schema": schema}
        fields = {
            "name": name,
            "kind": kind,
            **{key: _shown(path) for key, path in shown.items()},
            **parts.fields,
        }
        stem = kind.replace("-", "_")
        files_of_kind = (f"{stem}.py", f"{stem}_test.py", f"{stem}_page.md")
        templates = parts.templates or map(_template, files_of_kind)
        texts = dict(zip((module, test, page), templates, strict=True))
        found = {path: _filled(text, fields, is_test=path == test) for path, text in texts.items()}
        if parts.schema:
            doc = f'"""The {kind.replace("-", " ")} `{name}`."""\n'
            found |= {package / "__init__.py": doc, schema: parts.schema}
        return NewDeclaration(name, test, found)

    def _route(self, wanted: Wanted) -> _Parts:
        source = event_schema(wanted.event_type, self._schema_folders)
        output_type = f"{wanted.own_type}Record"
        fields = {
            "source_topic": wanted.source_topic,
            "source_type": wanted.event_type,
            "output_type": output_type,
            "fields": literal(source.fields),
            "example": literal(example(source)),
        }
        schema = routed_schema(source, output_type, wanted.key or source.key_field or "")
        return _Parts(fields, output_type, schema)

    def _emission(self, wanted: Wanted) -> _Parts:
        model = model_of(self._catalog, wanted.read_model)
        source = model.event_schemas[0]
        key = event_schema(source.name, self._schema_folders).key_field
        if key is None:
            raise FoldlakeError(
                f"The events of {model.name} have no foldlake.key: write the emission by hand."
            )
        output_type = f"{wanted.own_type}Record"
        fields = {
            "read_model": model.name,
            "output_type": output_type,
            "key": key,
            "fields": literal(tuple(found.name for found in emitted_fields(model, key))),
            "example": literal({"event_type": source.name, **example(source)}),
        }
        return _Parts(fields, output_type, emitted_schema(model, output_type, key))

    def _of_kind(self, wanted: Wanted) -> _Parts:
        source = event_schema(wanted.event_type, self._schema_folders)
        kind = self._catalog.kinds[wanted.kind]
        fields = {
            "import_kind": f"from {kind.__module__} import {kind.__name__}",
            "source_topic": wanted.source_topic,
            "source_type": wanted.event_type,
            "key": source.key_field or "",
            "example": literal(example(source)),
        }
        return _Parts(fields, templates=(kind.template, kind.test_template, _template("flow_page.md")))

    def _beside(self, test: str, page: str) -> tuple[Path, Path]:
        if self._folder == READ_MODELS:
            return (
                CHECKOUT / "tests" / "unit" / "read_models" / test,
                CHECKOUT / "docs" / "read_models" / page,
            )
        return self._folder / "tests" / test, self._folder / "docs" / page

    def _require_new(self, kind: str, name: str) -> None:
        require_name(kind, name)
        catalog = self._catalog
        flows = (known for flow in catalog.flows for known in (flow.name, flow.declared_name))
        if name in {*catalog.models, *catalog.outputs, *flows}:
            raise FoldlakeError(f"{name} is declared already: choose another name.")


def _read_model(wanted: Wanted) -> _Parts:
    event_type = f"{wanted.own_type}Recorded"
    fields = {"event_type": event_type, "path": wanted.name}
    return _Parts(fields, event_type, _filled(_template("read_model.avsc"), fields), "model")


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")


def _filled(template: str, fields: Mapping[str, str], *, is_test: bool = False) -> str:
    """Return a filled template; one of a test imports what its example needs."""
    text = Template(template).substitute(fields)
    if not is_test:
        return text
    needed = {"datetime.": "import datetime\n", "Decimal(": "from decimal import Decimal\n"}
    imports = [line for word, line in needed.items() if word in text and line not in text]
    return text.replace("\n\n", f"\n\n{''.join(imports)}\n" if imports else "\n\n", 1)


def _shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)
