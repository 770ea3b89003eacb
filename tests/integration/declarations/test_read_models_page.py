"""The read models of docs/read-models.md and the tutorial have the merge and the fold that the pages describe, and `./foldlake new` writes clean modules."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.read_models.balance import model as balance
from include.settings import CHECKOUT
from spark_jobs.folding.expressions.columns import field_columns
from stack.declaration_testing.results import folded
from tests.integration.declarations.run_module import run_module
from tests.support.documentation import page_blocks

DOCS = CHECKOUT / "docs"
MODULE = CHECKOUT / "tests" / "support" / "read_models" / "deposits_per_day.py"


def blocks(page: str) -> list[str]:
    """Return the page's blocks of Python, in order."""
    return [block.text for block in page_blocks.blocks(f"docs/{page}", "python")]


def block_with(page: str, text: str) -> str:
    """Return the only block of Python on a page that contains the text."""
    (found,) = [block for block in blocks(page) if text in block]
    return found


@pytest.fixture
def written(tmp_path: Path) -> ReadModel:
    """The read model that a newcomer has after copying the page's first block into a folder of declarations."""
    (tmp_path / "deposits_per_day.py").write_text(blocks("read-models.md")[0], encoding="utf-8")
    return load_catalog((tmp_path,)).models["deposits-per-day"]


def test_the_first_block_is_the_module_that_page_and_tutorial_name() -> None:
    assert blocks("read-models.md")[0] == MODULE.read_text(encoding="utf-8")
    for page in ("read-models.md", "tutorial.md"):
        assert str(MODULE.relative_to(CHECKOUT)) in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.timeout(300)
def test_the_derived_merge_of_the_page_s_fold_equals_the_fold_of_all_events(
    spark: SparkSession, written: ReadModel
) -> None:
    events = [{"customerId": "1", "amount": Decimal(amount)} for amount in ("5.00", "7.00", "2.00")]
    merge = written.merge(1)
    assert merge is not None

    parts = [folded(spark, written, part) for part in (events[:2], events[2:])]
    rows = [state for part in parts for state in part.values()]
    frame = spark.createDataFrame(rows, "deposits long, largest decimal(18,2)")
    merged = frame.agg(*(column.alias(name) for name, column in field_columns(merge).items())).first()

    (whole,) = folded(spark, written, events).values()
    assert merged is not None
    assert merged.asDict() == whole


@pytest.mark.timeout(300)
def test_the_tutorial_s_second_fold_adds_the_bonus(spark: SparkSession) -> None:
    names: dict[str, Any] = {}
    argument = block_with("tutorial.md", "round(amount * 1.01, 2)").strip().removesuffix(",")
    exec(argument, names)  # noqa: S102 - the page's own code
    original = balance.READ_MODEL
    assert names["folds"][1] == original.folds[1]
    changed = ReadModel(
        name="balance",
        source_topic=original.source_topic,
        event_types=original.event_types,
        key=original.key,
        state=original.state,
        folds=names["folds"],
    )
    events = [
        {"event_type": "FundsAdded", "customerId": "1", "amount": Decimal("10.00")},
        {"event_type": "FundsWithdrawn", "customerId": "1", "amount": Decimal("1.00")},
    ]

    assert folded(spark, changed, events)["1"]["amount"] == Decimal("9.10")
    assert folded(spark, changed, events, revision=1)["1"]["amount"] == Decimal("9.00")


@pytest.mark.timeout(600)
def test_what_new_writes_is_clean(tmp_path: Path) -> None:
    """The command on the first lines of the page, then the linter with the rules of the checkout, and the type checker."""
    for kind, name in (
        ("read-model", "visits"),
        ("route", "large-deposits"),
        ("emission", "balance-changes"),
    ):
        run_module(tmp_path, "cli", "new", kind, name)

    written = sorted(tmp_path.rglob("*.py"))
    assert len(written) >= len(("visits", "large-deposits", "balance-changes")) * 2
    for path in written:
        # The rules are those of the folder in which the command puts it by default.
        place = "tests/unit/read_models" if path.name.startswith("test_") else "include/read_models"
        named = ("--no-cache", "--stdin-filename", f"{place}/{path.parent.name}/{path.name}")
        text = path.read_text(encoding="utf-8")
        run_module(tmp_path, "ruff", "check", "--ignore", "INP001", *named, "-", text=text)
        assert run_module(tmp_path, "ruff", "format", *named, "-", text=text) == text
    run_module(tmp_path, "mypy", "--cache-dir", str(tmp_path / "mypy"), *map(str, written))
