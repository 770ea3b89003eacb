"""A read model's API is loaded from its package's modules, and rejected if it does not match the model and its events."""

import json
from pathlib import Path

import pytest

from include.declarations.api import Command, Lookup, ReadModelApi
from include.declarations.command_fields import IntegerField, TextField
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from tests.support.declarations.refusal import refusal

MODEL = """
from include.declarations.read_model import ReadModel, StateField
READ_MODEL = ReadModel("parcels", "parcels", ("Scanned",), lambda: None, (StateField("scans", "long"),), {1: dict})
"""
API = """
from include.declarations.api import Command, Lookup
from include.declarations.command_fields import IntegerField, TextField
"""
LOOKUPS = 'LOOKUPS = (Lookup("/api/parcels.getScans", "parcelId", ("scans", "event_count")),)\n'
COMMANDS = 'COMMANDS = (Command("/api/parcels.weigh", "Weighed", (TextField("parcelId"), IntegerField("grams", 1))),)\n'


def schema(name: str, *fields: str, key: str | None = "parcelId") -> str:
    types = {"occurredOn": {"type": "long", "logicalType": "timestamp-millis"}, "grams": "int"}
    named = [{"name": field, "type": types.get(field, "string")} for field in ("id", "occurredOn", *fields)]
    record = {"type": "record", "name": name, "namespace": "test", "fields": named}
    return json.dumps(record if key is None else record | {"foldlake.key": key})


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A read model's package, in a folder of additional read models."""
    package = tmp_path / "parcels"
    (package / "schemas").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text(MODEL)
    (package / "api.py").write_text(API + LOOKUPS)
    (package / "schemas" / "Scanned.avsc").write_text(schema("Scanned", "parcelId"))
    return package


def api_of(package: Path) -> ReadModelApi:
    return next(api for api in load_catalog((package.parent,)).apis if api.model.name == package.name)


def test_api_of_balance_is_loaded_from_its_package() -> None:
    (api,) = load_catalog().apis

    assert api.paths == ["/api/customers.getBalance", "/api/balance.addFunds", "/api/balance.withdrawFunds"]
    assert {schema.name for schema in api.schemas.values()} == {"FundsAdded", "FundsWithdrawn"}


def test_lookup_and_command_with_a_new_event_type_need_only_new_files(package: Path) -> None:
    (package / "weighing.py").write_text(API + COMMANDS)
    (package / "schemas" / "Weighed.avsc").write_text(schema("Weighed", "parcelId", "grams"))
    (package / "more").mkdir()
    (package / "more" / "__init__.py").touch()
    (package / "more" / "lookups.py").write_text(API + LOOKUPS.replace("getScans", "countScans"))

    api = api_of(package)

    assert [lookup.path for lookup in api.lookups] == ["/api/parcels.getScans", "/api/parcels.countScans"]
    assert {path: schema.name for path, schema in api.schemas.items()} == {"/api/parcels.weigh": "Weighed"}
    assert "Weighed" not in api.model.event_types
    assert [schema.name for schema in api.model.event_schemas] == ["Scanned"]


def test_declaration_imported_by_another_module_is_not_repeated(package: Path) -> None:
    (package / "more.py").write_text("from include.read_models.parcels.api import LOOKUPS\n")

    assert len(api_of(package).lookups) == 1


def test_read_model_in_a_single_file_may_declare_an_api(tmp_path: Path) -> None:
    (tmp_path / "parcels.py").write_text(MODEL + API + LOOKUPS)
    (tmp_path / "Scanned.avsc").write_text(schema("Scanned", "parcelId"))

    assert [api.model.name for api in load_catalog((tmp_path,)).apis] == ["balance", "parcels"]
    assert api_of(tmp_path / "parcels").paths == ["/api/parcels.getScans"]


def test_path_that_is_declared_twice_is_rejected(package: Path) -> None:
    (package / "more.py").write_text(API + LOOKUPS)
    with pytest.raises(ReadModelError, match=r"/api/parcels\.getScans is declared twice"):
        load_catalog((package.parent,))


def test_lookup_of_an_unknown_field_is_rejected(package: Path) -> None:
    (package / "api.py").write_text(API + LOOKUPS.replace('"scans"', '"weight"'))

    assert api_of(package).lookups == ()
    assert "returns weight, which parcels does not have" in refusal(package.parent)


def test_lookups_of_another_type_are_rejected(package: Path) -> None:
    (package / "api.py").write_text("LOOKUPS = ['/api/parcels.getScans']")

    assert api_of(package).lookups == ()
    assert "LOOKUPS of include.read_models.parcels.api must be a tuple of Lookup" in refusal(package.parent)


def test_command_without_a_schema_is_rejected(package: Path) -> None:
    (package / "api.py").write_text(API + COMMANDS)

    assert api_of(package).commands == ()
    assert "no schema of event type Weighed: add Weighed.avsc" in refusal(package.parent)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (schema("Weighed", "parcelId", "grams", "scale"), "does not set scale"),
        (schema("Weighed", "parcelId"), "lacks grams"),
        (schema("Weighed", "parcelId", "grams", key=None), "sets no key"),
    ],
)
def test_command_that_does_not_match_its_event_is_rejected(package: Path, text: str, error: str) -> None:
    (package / "api.py").write_text(API + COMMANDS)
    (package / "schemas" / "Weighed.avsc").write_text(text)

    assert api_of(package).commands == ()
    assert error in refusal(package.parent)


@pytest.mark.parametrize(
    "path", ["/api/partitions", "/api/read-models/x", "parcels.get", "/api/parcels.get more"]
)
def test_path_without_name_and_verb_is_rejected(path: str) -> None:
    with pytest.raises(ReadModelError, match="is not valid"):
        Lookup(path, "parcelId", ("scans",))
    with pytest.raises(ReadModelError, match="is not valid"):
        Command(path, "Weighed", ())


@pytest.mark.parametrize("value", ["1", 1, True, None])
def test_only_a_whole_json_number_is_valid(value: object) -> None:
    assert IntegerField("grams").error(value) == "must be a whole number"


def test_optional_text_may_be_left_out() -> None:
    assert TextField("note").is_required
    assert not TextField("note", optional=True).is_required


JOINED = """
from include.declarations.api import LookupJoin, Lookup
LOOKUPS = (Lookup("/api/parcels.getScans", "parcelId", ("scans",), join=LookupJoin({model!r}, ({field!r},))),)
"""


def test_a_lookup_is_joined_with_another_read_model(package: Path) -> None:
    (package / "api.py").write_text(JOINED.format(model="balance", field="amount"))

    assert [model.name for model in api_of(package).joined.values()] == ["balance"]


@pytest.mark.parametrize(
    ("model", "field", "message"),
    [
        ("blance", "amount", r"joined with 'blance', which is no read model\. Known read models: balance"),
        ("balance", "name", r"returns name, which balance does not have"),
        ("parcels", "scans", r"returns scans twice"),
    ],
)
def test_a_join_that_cannot_work_is_refused(package: Path, model: str, field: str, message: str) -> None:
    (package / "api.py").write_text(JOINED.format(model=model, field=field))

    with pytest.raises(ReadModelError, match=message):
        api_of(package)
