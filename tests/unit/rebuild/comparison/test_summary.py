"""The text of the approval says in Markdown what changes, and never fails."""

from dataclasses import replace
from pathlib import Path

import pytest

from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import FieldChange
from include.rebuild.comparison.fold_source import FoldText
from include.rebuild.comparison.summary import MOST_CODE_LINES, comparison_summary, markdown, with_exceeded
from tests.support.lake.comparison_example import EXAMPLE

NODE = "http://node:8081"


@pytest.mark.parametrize(
    "text",
    [
        "**The versions fold different topics.**",
        "**400 of 4,003 keys differ (9.99 %)** between v2 and the live v1: 395 changed, 3 new, 2 gone.",
        "| amount | 42,840,000.00 | 44,660,000.00 | +1,820,000.00 (+4.25 %) | 1,820,100.00 | 0 → 7 |",
        "![number of keys by the change of amount](http://node:8081/reports/changes/rebuild-balance-v2.svg)",
        r"| [you & \<me\>](http://node:8081/explain?readModel=balance&key=you+%26+%3Cme%3E) | 12 | 8,000.00 → 80.50 | 0012 |",
        r"[gone\|away]",
        '```diff\n-def funds():\n+def funds_with_bonus():\n     amount = signed()\n-    return {"amount": F.sum(amount)}\n',
        "(http://node:8081/reports/changes/rebuild-balance-v2.html)",
    ],
)
def test_the_approval_states(text: str) -> None:
    assert text in markdown(EXAMPLE, NODE)


def test_a_key_with_line_breaks_and_markup_stays_one_cell() -> None:
    change = replace(EXAMPLE.largest[0], key="a\n| b |`c`", fields={"amount": FieldChange("1", "2")})
    text = markdown(replace(EXAMPLE, largest=(change,)), NODE)
    assert r"| [a \| b \|\`c\`](" in text


def test_versions_with_one_fold_show_no_code() -> None:
    folds = (EXAMPLE.folds[0], EXAMPLE.folds[0])
    same = replace(EXAMPLE, after=replace(EXAMPLE.after, fold_revision=1), folds=folds)
    assert "Both versions have fold revision 1." in markdown(same, NODE)
    assert "```" not in markdown(same, NODE)


def test_a_long_fold_is_cut_off() -> None:
    long = FoldText(2, "\n".join(f"line {n}" for n in range(3 * MOST_CODE_LINES)))
    text = markdown(replace(EXAMPLE, folds=(EXAMPLE.folds[0], long)), NODE)
    assert text.count("\n+line") < MOST_CODE_LINES
    assert "The rest of the fold is in the report." in text


def test_without_a_comparison_the_approval_says_so(tmp_path: Path) -> None:
    assert "changes are unknown" in comparison_summary(tmp_path, NODE, "rebuild-balance-v2")
    report.write(tmp_path, EXAMPLE)
    assert "400 of 4,003" in comparison_summary(tmp_path, NODE, "rebuild-balance-v2")


def test_exceeded_thresholds_come_first() -> None:
    assert with_exceeded("body", ()) == "body"
    text = with_exceeded("body", ["first (a_b)", "second"])
    assert text == "**Thresholds of the form are exceeded**\n\n- first \\(a\\_b\\)\n- second\n\nbody"
