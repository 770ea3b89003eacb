"""The files of a new declaration: a package with its module and its schema, a test, and a page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template

from cli.scaffold.schemas import emitted_fields, emitted_schema, example, literal, routed_schema
from include.declarations.catalog import Catalog
from include.declarations.event_types.event_schemas import READ_MODELS, event_schema
from include.declarations.kinds.kind import FlowDeclaration
from include.declarations.read_model import NAME_PATTERN
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


class Scaffold:
    """Makes declarations in a folder, beside those of a catalog; schema_folders: where else event schemas are."""

    def __init__(self, folder: Path, catalog: Catalog, schema_folders: tuple[Path, ...]) -> None:
        self._folder = folder
        self._catalog = catalog
        self._schema_folders = schema_folders

    def read_model(self, name: str) -> NewDeclaration:
        """Return a read model with an event type of its own, and an API."""
        self._require_new(name, self._catalog.models)
        event_type = f"{_camel_case(name)}Recorded"
        fields = {"event_type": event_type, "path": name}
        return self._declaration(
            name,
            event_type,
            _filled("read_model.avsc", fields),
            {"__init__.py": f'"""The read model `{name}`: its state, its API, and its events."""\n'},
            {"model.py": "read_model.py"},
            ("read_model_test.py", "read_model_page.md"),
            fields,
        )

    def route(self, name: str, source_topic: str, source_type: str, key: str) -> NewDeclaration:
        """Return a route of an event type. key: the field that is the new key; empty: that of the events."""
        self._require_new(name, self._catalog.routes)
        source = event_schema(source_type, self._schema_folders)
        output_type = f"{_camel_case(name)}Record"
        key = key or source.key_field or ""
        fields = {
            "source_topic": source_topic,
            "source_type": source_type,
            "output_type": output_type,
            "fields": literal(source.fields),
            "example": literal(example(source)),
        }
        return self._declaration(
            name,
            output_type,
            routed_schema(source, output_type, key),
            {"__init__.py": f'"""The route `{name}`."""\n'},
            {"route.py": "route.py"},
            ("route_test.py", "route_page.md"),
            fields,
        )

    def emission(self, name: str, read_model: str) -> NewDeclaration:
        """Return an emission of a read model."""
        self._require_new(name, self._catalog.emissions)
        model = self._catalog.models.get(read_model)
        if model is None:
            raise FoldlakeError(
                f"There is no read model {read_model!r}. Known read models: {', '.join(sorted(self._catalog.models))}."
            )
        source = model.event_schemas[0]
        key = event_schema(source.name, self._schema_folders).key_field
        if key is None:
            raise FoldlakeError(
                f"The events of {read_model} have no foldlake.key: write the emission by hand."
            )
        output_type = f"{_camel_case(name)}Record"
        fields = {
            "read_model": read_model,
            "output_type": output_type,
            "key": key,
            "fields": literal(tuple(found.name for found in emitted_fields(model, key))),
            "example": literal({"event_type": source.name, **example(source)}),
        }
        return self._declaration(
            name,
            output_type,
            emitted_schema(model, output_type, key),
            {"__init__.py": f'"""The emission `{name}`."""\n'},
            {"emission.py": "emission.py"},
            ("emission_test.py", "emission_page.md"),
            fields,
        )

    def of_kind(
        self, kind: type[FlowDeclaration], name: str, source_topic: str, source_type: str
    ) -> NewDeclaration:
        """Return a declaration of a kind that a module defines, from the kind's own template."""
        self._require_new(name, {flow.name: flow for flow in self._catalog.flows})
        source = event_schema(source_type, self._schema_folders)
        module = self._folder / f"{name.replace('-', '_')}.py"
        test, page = self._beside(f"test_{module.name}", f"{name}.md")
        fields = {
            "name": name,
            "kind": kind.kind,
            "import_kind": f"from {kind.__module__} import {kind.__name__}",
            "source_topic": source_topic,
            "source_type": source_type,
            "key": source.key_field or "",
            "example": literal(example(source)),
            "module": _shown(module),
            "test": _shown(test),
        }
        texts = {module: kind.template, test: kind.test_template, page: _template("flow_page.md")}
        return NewDeclaration(
            name, test, {path: _text(text, path.name, fields) for path, text in texts.items()}
        )

    def _declaration(
        self,
        name: str,
        schema_name: str,
        schema: str,
        texts: Mapping[str, str],
        modules: Mapping[str, str],
        test_and_page: tuple[str, str],
        fields: Mapping[str, str],
    ) -> NewDeclaration:
        package = self._folder / name.replace("-", "_")
        test, page = self._beside(f"test_{package.name}.py", f"{name}.md")
        shown = {
            "name": name,
            "test": _shown(test),
            "module": _shown(package / next(iter(modules))),
            "schema": f"{_shown(package)}/schemas/{schema_name}.avsc",
            **fields,
        }
        found = {package / file: text for file, text in texts.items()}
        found |= {package / file: _filled(template, shown) for file, template in modules.items()}
        found[package / "schemas" / f"{schema_name}.avsc"] = schema
        found[test], found[page] = (_filled(template, shown) for template in test_and_page)
        return NewDeclaration(name, test, found)

    def _beside(self, test: str, page: str) -> tuple[Path, Path]:
        if self._folder == READ_MODELS:
            return (
                CHECKOUT / "tests" / "unit" / "read_models" / test,
                CHECKOUT / "docs" / "read_models" / page,
            )
        return self._folder / "tests" / test, self._folder / "docs" / page

    def _require_new(self, name: str, known: Mapping[str, object]) -> None:
        if not NAME_PATTERN.fullmatch(name):
            raise FoldlakeError(f"{name!r} is no valid name: use lower-case letters, digits and dashes.")
        if name in known:
            raise FoldlakeError(f"{name} is declared already: choose another name.")


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")


def _filled(template: str, fields: Mapping[str, str]) -> str:
    return _text(_template(template), template, fields)


def _text(template: str, name: str, fields: Mapping[str, str]) -> str:
    """Return a filled template; one of a test imports what its example needs."""
    text = Template(template).substitute(fields)
    if name.endswith("_test.py") or name.startswith("test_"):
        imports = [
            line
            for word, line in (
                ("datetime.", "import datetime\n"),
                ("Decimal(", "from decimal import Decimal\n"),
            )
            if word in text and line not in text
        ]
        text = text.replace("\n\n", f"\n\n{''.join(imports)}\n" if imports else "\n\n", 1)
    return text


def _shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


def _camel_case(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))
