"""docs/quality.md lists the names of the expectations."""

from pathlib import Path

from include.replay import key_expectations
from include.replay.key_expectations import folds_to

DOCS = Path(__file__).parents[3] / "docs" / "quality.md"


def test_every_expectation_of_the_docs_is_evaluated() -> None:
    table = (
        DOCS.read_text(encoding="utf-8").partition("| expectation | fails for |\n")[2].partition("\n\n")[0]
    )
    documented = {row.split("`")[1] for row in table.splitlines()[1:]}
    stated = {
        value for name, value in vars(key_expectations).items() if name.isupper() and isinstance(value, str)
    }

    assert len(documented) == 11
    assert documented - stated == {"<field> equals the replayed value"}
    assert folds_to("<field>") in documented
