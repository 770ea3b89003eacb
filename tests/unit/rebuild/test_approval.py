"""The approval of a promotion names every version, shows what it changes, and which thresholds are exceeded."""

from dataclasses import replace
from pathlib import Path

import pytest

from include.rebuild.approval import approval_question, exceeded_thresholds
from include.rebuild.comparison import report
from include.rebuild.comparison.thresholds import Thresholds
from tests.support.lake.comparison_example import EXAMPLE
from tests.support.rebuild.stage_runs import version

BALANCE = {"balance": version(7)}
SEVERAL = {"accounts": version(7, "postings.v2"), "largest-postings": version(3, "postings.v2")}
NO_NEGATIVE = Thresholds(no_negative=True)


def test_the_question_names_version_read_model_and_reason(tmp_path: Path) -> None:
    report.write(tmp_path, replace(EXAMPLE, run_id="rebuild-balance-v7"))

    question = approval_question(BALANCE, "1 % bonus {not a field}", tmp_path, str(tmp_path), "http://node")

    assert question.subject == "Promote v7 of balance? 1 % bonus {not a field}"
    assert question.body.startswith("v7 of balance was built with fold revision 2")
    assert "400 of 4,003 keys differ" in question.body
    assert "There are no results of quality checks." in question.body


def test_the_question_about_several_versions_names_each_and_their_topic(tmp_path: Path) -> None:
    question = approval_question(SEVERAL, "why", tmp_path, str(tmp_path), "http://node")

    assert question.subject == "Promote v7 of accounts, v3 of largest-postings, together? why"
    for name, number in (("accounts", 7), ("largest-postings", 3)):
        assert f"v{number} of {name} was built from postings.v2" in question.body
        assert f"there is no comparison rebuild-{name}-v{number}" in question.body


def test_thresholds_without_a_comparison_require_a_person(tmp_path: Path) -> None:
    (sentence,) = exceeded_thresholds(BALANCE, NO_NEGATIVE, tmp_path)
    assert "no comparison rebuild-balance-v7" in sentence


@pytest.mark.parametrize(("limit", "expected"), [(10.0, []), (9.5, ["9.99 %"])])
def test_thresholds_are_evaluated_with_the_comparison_of_the_version(
    tmp_path: Path, limit: float, expected: list[str]
) -> None:
    report.write(tmp_path, replace(EXAMPLE, run_id="rebuild-balance-v7"))

    found = exceeded_thresholds(BALANCE, Thresholds(max_changed_percent=limit), tmp_path)

    assert len(found) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, found, strict=True))


def test_the_read_model_whose_thresholds_are_exceeded_is_named(tmp_path: Path) -> None:
    report.write(tmp_path, replace(EXAMPLE, run_id="rebuild-accounts-v7", fields={}))
    report.write(tmp_path, replace(EXAMPLE, run_id="rebuild-largest-postings-v3"))

    (sentence,) = exceeded_thresholds(SEVERAL, NO_NEGATIVE, tmp_path)

    assert sentence.startswith("largest-postings: amount is below zero in 7 keys")
