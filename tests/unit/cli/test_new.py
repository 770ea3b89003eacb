"""`./foldlake new` refuses what cannot work, and overwrites nothing."""

from decimal import Decimal
from pathlib import Path

import pytest

from cli.scaffold.files import Scaffold, Wanted
from cli.scaffold.schemas import example, routed_schema
from include.declarations.event_types.event_schemas import READ_MODELS, event_schema
from include.declarations.load import load_catalog
from include.errors import FoldlakeError
from include.kafka.record_schema import RecordSchema
from include.settings import CHECKOUT
from include.settings.systems import SYSTEMS

POS = (SYSTEMS / "pos",)


@pytest.fixture
def scaffold(tmp_path: Path) -> Scaffold:
    return Scaffold(tmp_path, load_catalog(), ())


@pytest.mark.parametrize("name", ["Parcels", "1st", "a b", ""])
def test_a_name_that_is_not_valid_is_refused(scaffold: Scaffold, name: str) -> None:
    with pytest.raises(FoldlakeError, match="is not valid: use lower-case"):
        scaffold.new(Wanted("read-model", name))


@pytest.mark.parametrize("kind", ["read-model", "route", "emission"])
def test_a_declared_name_is_refused(scaffold: Scaffold, kind: str) -> None:
    with pytest.raises(FoldlakeError, match="balance is declared already"):
        scaffold.new(Wanted(kind, "balance"))


def test_an_unknown_kind_is_refused(scaffold: Scaffold) -> None:
    with pytest.raises(FoldlakeError, match=r"no kind 'fold'\. Known kinds: read-model, route, emission"):
        scaffold.new(Wanted("fold", "parcels"))


def test_nothing_is_overwritten(scaffold: Scaffold, tmp_path: Path) -> None:
    kept = tmp_path / "docs" / "parcels.md"
    kept.parent.mkdir()
    kept.write_text("mine")

    with pytest.raises(FoldlakeError, match=r"parcels\.md exists already"):
        scaffold.new(Wanted("read-model", "parcels")).write()

    assert kept.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == [kept.parent]


def test_what_a_declaration_reads_must_exist(scaffold: Scaffold) -> None:
    with pytest.raises(FoldlakeError, match=r"There is no read model 'orders'\. Known read models: balance"):
        scaffold.new(Wanted("emission", "order-changes", read_model="orders"))
    with pytest.raises(FoldlakeError, match=r"FundsAdded has no field 'card'.*customerId"):
        scaffold.new(Wanted("route", "by-card", key="card"))


def test_in_the_checkout_test_and_page_are_beside_the_others() -> None:
    found = Scaffold(READ_MODELS, load_catalog(), ()).new(Wanted("read-model", "parcel-scans"))

    assert found.test == CHECKOUT / "tests" / "unit" / "read_models" / "test_parcel_scans.py"
    assert CHECKOUT / "docs" / "read_models" / "parcel-scans.md" in found.texts
    assert READ_MODELS / "parcel_scans" / "schemas" / "ParcelScansRecorded.avsc" in found.texts


def test_an_example_has_a_value_of_every_type() -> None:
    invoice = example(event_schema("PosInvoice", POS))

    assert isinstance(invoice["totalAmount"], Decimal)
    assert isinstance(invoice["invoiceLineItems"], list)


def test_a_routed_field_keeps_its_privacy_unless_it_is_hashed_already() -> None:
    personal = event_schema("PosInvoice", POS)
    hashed = event_schema("TrendRecord", POS)

    assert '"foldlake.privacy": "personal"' in routed_schema(personal, "Copy", "storeId")
    text = routed_schema(hashed, "Copy", str(hashed.key_field))
    assert '"foldlake.privacy": "pseudonym"' not in text
    assert RecordSchema.parse(text, "a test").fields == hashed.fields
