"""Every example of the pages about declarations works as it is written: whole modules are loaded and computed as the stream driver does, excerpts within a module."""

import re
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import foldlake
from demo.systems.logs import browser_windows, product_views
from include.declarations.catalog import Catalog
from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.read_models.balance import model as balance
from include.settings import CHECKOUT
from stack.declaration_testing.results import emitted, folded, routed
from tests.integration.declarations.run_module import run_module
from tests.support.documentation.page_blocks import Block, blocks_run

SUPPORT = CHECKOUT / "tests" / "support"
NEW_KIND = "docs/how-to/new-kind.md"
# Each example: its page, and a text that no other example of the page has.
EXAMPLES = {
    "per day": ("docs/read-models.md", "deposits-per-day"),
    "fold by type": ("docs/read-models.md", "CASE WHEN"),
    "receipts": ("docs/emissions.md", "def receipt("),
    "periodic emission": ("docs/emissions.md", "PeriodicEmission("),
    "postings": ("docs/routes.md", "Route("),
    "api": ("docs/how-to/lookups-and-commands.md", "Command("),
    "windows": ("docs/how-to/lookups-and-commands.md", "WindowLookup("),
    "revisions": ("docs/how-to/add-a-field.md", "folds={"),
    "test": ("docs/how-to/test-a-rule.md", "foldlake.testing"),
    "test with Spark": ("docs/how-to/test-a-rule.md", "declaration_session"),
    "kind": (NEW_KIND, "FlowDeclaration"),
    "kind of lookup": (NEW_KIND, "Endpoint"),
}
# The module around the arguments of `revisions`, and the read model beside a lookup of several records.
REVISED = """from foldlake import ReadModel, StateField, decimal_type
DECLARATIONS = [
    ReadModel(name="revised", source_topic="balance", event_types=("FundsAdded",), key="customerId",
{arguments}
    ),
]
"""
BESIDE = """{kind}
from foldlake import ReadModel, StateField, decimal_type
DECLARATIONS = [
    ReadModel(name="amounts", source_topic="balance", event_types=("FundsAdded",), key="customerId",
        state=(StateField("amount", decimal_type(18, 2)),), folds={{1: {{"amount": "max(amount)"}}}}),
    {endpoint},
]
"""


def block(name: str) -> Block:
    """Return an example."""
    page, text = EXAMPLES[name]
    (found,) = [one for one in blocks_run("declarations") if one.page == page and text in one.text]
    return found


def names_of(example: str, **names: object) -> dict[str, Any]:
    """Return the names that an excerpt defines, with those of `foldlake` and these."""
    known = {**{name: getattr(foldlake, name) for name in foldlake.__all__}, **names}
    exec(block(example).text, known)  # noqa: S102 - the page's own code
    return known


def deposits(*amounts: str, customer: str = "1") -> list[dict[str, Any]]:
    """Return deposits of a customer on 31 January 2026."""
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    return [
        {"id": str(number), "customerId": customer, "amount": Decimal(amount), "occurredOn": noon}
        for number, amount in enumerate(amounts)
    ]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The declarations of a user who has saved all modules of the pages, with the excerpts in modules of their own."""
    folder = tmp_path_factory.mktemp("declarations")
    schemas = folder / "schemas"
    schemas.mkdir()
    for path in SUPPORT.glob("read_models_with_*/schemas/*.avsc"):
        if path.stem in {"Receipt", "Posting"}:
            shutil.copy(path, schemas)
    shutil.copy(SUPPORT / "read_models_with_emissions" / "savings.py", folder)
    endpoint = re.search(
        r"Declare `(ManyKeys\(.+?\))` beside", (CHECKOUT / NEW_KIND).read_text(encoding="utf-8")
    )
    assert endpoint is not None
    written = {
        "deposits_per_day": block("per day").text,
        "receipts": block("receipts").text,
        "postings": block("postings").text,
        "distinct": block("kind").text,
        "revised": REVISED.format(arguments=block("revisions").text),
        "many": BESIDE.format(kind=block("kind of lookup").text, endpoint=endpoint[1]),
    }
    for name, text in written.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return load_catalog((folder,))


def test_each_example_has_a_test_and_each_module_loads(catalog: Catalog) -> None:
    assert {block(name).place for name in EXAMPLES} == {one.place for one in blocks_run("declarations")}
    assert catalog.failures == ()


@pytest.mark.timeout(300)
def test_the_tests_of_the_page_fold_the_first_read_model(tmp_path: Path, catalog: Catalog) -> None:
    # The block starts a session of its own, so it runs in a process of its own.
    (tmp_path / "deposits_per_day.py").write_text(block("per day").text, encoding="utf-8")
    in_spark = run_module(
        tmp_path, "tests.integration.declarations.run_block", text=block("test with Spark").text
    )
    names = names_of("test", DEPOSITS=catalog.models["deposits-per-day"], Decimal=Decimal)

    (state,) = names["states"].values()
    assert state == {"deposits": 1, "largest": Decimal("5.00")}
    assert in_spark.splitlines()[-1] == repr(names["states"])


@pytest.mark.timeout(300)
def test_the_emission_writes_a_receipt_for_each_large_deposit(spark: SparkSession, catalog: Catalog) -> None:
    receipts, savings = catalog.emissions["receipts"], catalog.models["savings"]

    written = emitted(spark, receipts, savings, deposits("5.00", "0.50", "2.00"), revision=1)

    assert [(one["deposits"], one["total"]) for one in written] == [
        (1, Decimal("5.00")),
        (3, Decimal("7.50")),
    ]


@pytest.mark.timeout(300)
def test_the_route_posts_each_large_deposit_twice(spark: SparkSession, catalog: Catalog) -> None:
    written = routed(spark, catalog.routes["postings"], deposits("5.00", "0.50"))

    assert [(one["account"], one["amount"]) for one in written] == [
        ("2026-01-31", Decimal("5.00")),
        ("bank", Decimal("5.00")),
    ]


@pytest.mark.timeout(300)
def test_the_new_kind_forwards_the_first_event_of_each_key(spark: SparkSession, catalog: Catalog) -> None:
    (flow,) = (flow for flow in catalog.flows if flow.kind == "distinct")

    written = routed(spark, flow, [*deposits("5.00", "2.00"), *deposits("1.00", customer="2")])

    assert [(one["customerId"], one["amount"]) for one in written] == [
        ("1", Decimal("5.00")),
        ("2", Decimal("1.00")),
    ]


@pytest.mark.timeout(300)
def test_the_second_revision_has_one_more_field(spark: SparkSession, catalog: Catalog) -> None:
    revised: ReadModel = catalog.models["revised"]
    events = deposits("5.00", "2.00", "7.00")
    first = {"deposits": 3, "largest": Decimal("7.00")}

    assert folded(spark, revised, events) == {"1": first | {"smallest": Decimal("2.00")}}
    assert folded(spark, revised, events, revision=1) == {"1": first}


def test_excerpts_are_those_of_the_modules_that_the_pages_name() -> None:
    api = names_of("api", READ_MODEL=balance.READ_MODEL)
    windows = names_of("windows", **vars(browser_windows))
    (lookup,) = windows["DECLARATIONS"]
    (periodic,) = names_of("periodic emission")["DECLARATIONS"]
    fold = eval(block("fold by type").text)  # noqa: S307 - the page's own code

    assert api["DECLARATIONS"] == balance.DECLARATIONS
    assert periodic in product_views.DECLARATIONS
    assert fold == balance.READ_MODEL.folds[1]
    assert windows["WINDOW"] == browser_windows.WINDOW
    (model,) = (one for one in browser_windows.DECLARATIONS if isinstance(one, ReadModel))
    lookup.validate_against(model)


def test_the_new_kind_of_lookup_returns_the_records_of_all_keys(catalog: Catalog) -> None:
    (lookup,) = (endpoint for model, endpoint in catalog.endpoints if model.name == "amounts")

    assert lookup.path == "/api/balances.getMany"
    assert lookup.keys({"customerIds": "1,2"}) == [b"1", b"2"]
    assert lookup.answer([{"amount": "10.00"}, {"amount": "2.50"}]) in (CHECKOUT / NEW_KIND).read_text(
        encoding="utf-8"
    )
