"""Each module of the package defines an expectation: a new one is a new file. docs/quality.md lists their names."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.errors import FoldlakeError
from spark_jobs.quality import expectations
from spark_jobs.quality.expectations.field_is_replayed import folds_to

DOCS = Path(__file__).parents[3] / "docs" / "quality.md"


@pytest.fixture
def further_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with additional modules of the package."""
    monkeypatch.setattr(expectations, "__path__", [*expectations.__path__, str(tmp_path)])
    expectations._modules.cache_clear()
    yield tmp_path
    expectations._modules.cache_clear()
    sys.modules.pop(f"{expectations.__name__}.further", None)


def test_an_expectation_is_one_new_module(further_module: Path) -> None:
    (further_module / "further.py").write_text(
        "from spark_jobs.quality.rules import AtMost, Expectation\n"
        "def of_each_key(fields):\n"
        '    return [Expectation(f"{field} is small", AtMost(field, 9)) for field in fields]\n'
        "def of_stores(check):\n"
        '    return [f"result of {check}"]\n'
    )
    module = expectations._modules()

    assert "further" in {one.__name__.rpartition(".")[2] for one in module}
    found = next(one for one in module if one.__name__.endswith(".further"))
    assert [one.name for one in found.of_each_key(["amount"])] == ["amount is small"]


def test_error_names_a_module_without_an_expectation(further_module: Path) -> None:
    (further_module / "further.py").write_text("")

    with pytest.raises(FoldlakeError, match=r"expectations\.further states no expectation"):
        expectations._modules()


def test_every_expectation_of_the_docs_is_evaluated() -> None:
    table = (
        DOCS.read_text(encoding="utf-8").partition("| expectation | fails for |\n")[2].partition("\n\n")[0]
    )
    documented = {row.split("`")[1] for row in table.splitlines()[1:]}
    stated = {
        value
        for module in expectations._modules()
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }

    assert len(documented) == 10
    assert documented - stated == {"<field> is what the events fold to"}
    assert folds_to("<field>") in documented
