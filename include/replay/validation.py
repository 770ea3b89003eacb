"""Validates the frames of a check with Great Expectations: which expectations are met, and how many and which rows fail.

The context is ephemeral and has no Data Docs: those load their style from other hosts. Great Expectations takes seconds to import, so the first validation imports it.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from include.quality.check import ExpectationResult, QualityError, StoreName
from include.replay.rules import Expectation, great_expectations

# Number of failing rows in the result of an expectation.
MAX_SAMPLE = 20


def validate(
    store: StoreName,
    frame: pd.DataFrame,
    expectations: Sequence[Expectation],
    index: Sequence[str],
) -> list[ExpectationResult]:
    """Return the result of each expectation over the rows of a frame.

    Args:
        store: the store that the rows belong to.
        frame: the rows.
        expectations: the expectations of every row.
        index: the columns that identify a row in the result's sample.

    Raises:
        QualityError: Great Expectations gave no verdict, for example because a column is missing.
    """
    batch = _batch(frame)
    checked = len(frame)
    started_s = time.monotonic()
    # First determine whether each expectation is met.
    outcomes = _outcomes(batch, expectations, {"result_format": "BOOLEAN_ONLY"})
    duration_s = (time.monotonic() - started_s) / len(expectations)
    failed = [one for one, outcome in zip(expectations, outcomes, strict=True) if not outcome.success]
    # Then count and sample the failing rows. The format COMPLETE would fetch every failing row, and a store may have lost
    # all of its keys.
    in_detail = {
        "result_format": "SUMMARY",
        "unexpected_index_column_names": list(index),
        "partial_unexpected_count": MAX_SAMPLE,
    }
    details = dict(zip((one.name for one in failed), _outcomes(batch, failed, in_detail), strict=True))
    return [
        _failure(store, one.name, checked, details[one.name], index, duration_s)
        if one.name in details
        else ExpectationResult(store, one.name, checked, 0, duration_s)
        for one in expectations
    ]


def _batch(frame: pd.DataFrame) -> Any:  # noqa: ANN401 - Great Expectations' own
    gx = great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(enable=False)
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("frame").add_dataframe_asset("comparison")
    return asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})


def _outcomes(
    batch: Any,  # noqa: ANN401 - Great Expectations' own
    expectations: Sequence[Expectation],
    result_format: dict[str, Any],
) -> list[Any]:
    """Return Great Expectations' outcome of each expectation, in order; raises QualityError if one is missing."""
    if not expectations:
        return []
    suite = great_expectations().ExpectationSuite(name="suite")
    for number, expectation in enumerate(expectations):
        statement = expectation.rule.statement()
        statement.meta = {"number": number}
        suite.add_expectation(statement)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = batch.validate(suite, result_format=result_format).results
    for outcome in outcomes:
        errors = outcome.exception_info or {}
        for info in (errors, *(value for value in errors.values() if isinstance(value, dict))):
            if info.get("raised_exception"):
                raise QualityError(f"Great Expectations gave no verdict: {info.get('exception_message')}")
    return sorted(outcomes, key=lambda outcome: outcome.expectation_config.meta["number"])


def _failure(
    store: StoreName,
    name: str,
    checked: int,
    outcome: Any,  # noqa: ANN401 - Great Expectations' own
    index: Sequence[str],
    duration_s: float,
) -> ExpectationResult:
    found = outcome.result
    failed = int(found.get("unexpected_count") or 0)
    if failed == 0:
        raise QualityError(f"Great Expectations did not count the rows that fail {name!r}: {found}")
    rows = found.get("partial_unexpected_index_list") or ()
    sample = tuple({column: str(row[column]) for column in index} for row in rows[:MAX_SAMPLE])
    return ExpectationResult(store, name, checked, failed, duration_s, sample)
