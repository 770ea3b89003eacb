"""An expression that uses a column that its events lack is refused with the place and the columns that exist."""

import re
from pathlib import Path

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.event_types.known_columns import KnownColumns
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings.systems import SYSTEMS
from tests.support.declarations.renamed_balance import renamed_balance

FUNDS = KnownColumns.of_events((event_schema("FundsAdded"), event_schema("FundsWithdrawn")))
INVOICE = KnownColumns.of_events((event_schema("PosInvoice", (SYSTEMS / "pos",)),))


@pytest.mark.parametrize(
    "text",
    [
        "sum(amount)",
        "AMOUNT",
        "FundsAdded.amount",
        "event_type",
        "max_by(amount, offset)",
        "`record:offset`",
        "1",
    ],
)
def test_columns_of_events_are_known(text: str) -> None:
    FUNDS.require("Fold", text)


def test_fields_inside_of_structs_and_arrays_are_known() -> None:
    INVOICE.require("Fields", "concat(deliveryAddress.city, invoiceLineItems[0].itemCode)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sum(amonut)",
            "Fold 1: 'sum(amonut)': line 1, column 5: there is no column amonut. Did you mean amount? Columns: ",
        ),
        ("FundsAdded.amonut", "FundsAdded has no field amonut. Did you mean amount? Its fields: "),
        ("amount.cents", "amount has no field cents."),
        ("FundsLost.amount", "there is no column FundsLost"),
        ("state.amount", "there is no column state"),
    ],
)
def test_another_column_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ReadModelError, match=re.escape(message)):
        FUNDS.require("Fold 1", text)


def test_a_field_of_a_struct_is_checked() -> None:
    with pytest.raises(ReadModelError, match=r"deliveryAddress has no field town\. .*Its fields: .*city"):
        INVOICE.require("Fields", "deliveryAddress.town")


def test_a_struct_hides_a_column_of_its_name() -> None:
    known = FUNDS.and_struct("amount", ["total"])

    known.require("Fields", "amount.total")
    with pytest.raises(ReadModelError, match="amount has no field cents"):
        known.require("Fields", "amount.cents")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("-amount", "-amonut", "Fold 1 of read model purse, field amount: .*there is no column amonut"),
        (
            'key="customerId"',
            'key="customer"',
            "Key of read model purse: 'customer': line 1, column 1: there is no column customer",
        ),
        (
            '{"amount": "sum',
            '{"total": "sum',
            r"Fold 1 of read model purse gives \['total'\], but \['amount'\] are declared",
        ),
        ("END)", "END", "Fold 1 of read model purse, field amount: .*Expecting \\)"),
    ],
)
def test_a_module_with_a_wrong_expression_is_left_out(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    text = renamed_balance("purse")
    assert right in text
    (tmp_path / "purse.py").write_text(text.replace(right, wrong))

    catalog = load_catalog((tmp_path,))

    assert catalog.models.keys() == {"balance"}
    (failure,) = catalog.failures
    assert re.search(message, failure.error)
