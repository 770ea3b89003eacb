"""What is expected of stored records, stated with Great Expectations and judged over the comparison of both sides.

Its import takes seconds: this module imports it when it is first asked for a verdict.
"""

import logging
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.quality.check import ExpectationResult, QualityError, StoreName
from spark_jobs.quality.stores.base import StoreReplica

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

NO_MISSING_KEY = "no key is missing"
NO_EXTRA_KEY = "no key without events"
COMPLETE = "complete up to the cut"
ONCE = "each key stands once"
WHOLE_PARTITIONS = "no partition is truncated"
FRESH = "fresh"
WHOLE_LOG = "the log is whole"
RIGHT_STORE = "the store is of this version, and answers"
KEY_COUNT = "as many keys as the log"

# A partition that lacks this share of its keys, and more than one, has lost a part of itself, not some keys.
TRUNCATED_SHARE = 0.1
MAX_SAMPLE = 20


def folds_to(field: str) -> str:
    """Return the name of the expectation that a field is what the events fold to."""
    return f"{field} is what the events fold to"


@dataclass(frozen=True)
class NamedExpectation:
    """One expectation: its name, and Great Expectations' statement of it over certain columns."""

    name: str
    statement: "Expectation"


def judged_columns(comparison: DataFrame, fields: Sequence[str]) -> DataFrame:
    """Return the comparison as flat columns for the expectations, with `failed`: the names of those that a row fails.

    Where one side is absent, neither side's fields are compared: that the key is missing or extra says it all.
    """
    both = col("stored").isNotNull() & col("replayed").isNotNull()
    # A missing key has a replayed record beside it, to be shown.
    extra = col("stored").isNotNull() & col("replayed").isNull()
    pairs: list[Column] = []
    failed: list[Column] = []
    for field in fields:
        stored, replayed = col(f"stored.{field}"), col(f"replayed.{field}")
        pairs += [
            F.when(both, stored).alias(f"stored_{field}_text"),
            F.when(both, replayed).alias(f"replayed_{field}_text"),
        ]
        failed.append(F.when(both & (stored != replayed), folds_to(field)))
    behind = col("stored").isNotNull() & (col("stored_offset") < col("required_offset"))
    failed += [
        F.when(col("stored").isNull(), NO_MISSING_KEY),
        F.when(extra, NO_EXTRA_KEY),
        F.when(behind, COMPLETE),
        F.when(col("copy") > 1, ONCE),
    ]
    return comparison.select(
        "*",
        F.when(col("stored").isNotNull(), col("key")).alias("stored_key"),
        F.when(~extra, col("key")).alias("replayed_key"),
        *pairs,
        F.array_compact(F.array(*failed)).alias("failed"),
    )


def of_keys(fields: Sequence[str]) -> list[NamedExpectation]:
    """State what is expected of each key."""
    gxe = _great_expectations().expectations

    equal = [
        NamedExpectation(
            folds_to(field),
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A=f"stored_{field}_text",
                column_B=f"replayed_{field}_text",
                ignore_row_if="both_values_are_missing",
            ),
        )
        for field in fields
    ]
    return [
        *equal,
        NamedExpectation(NO_MISSING_KEY, gxe.ExpectColumnValuesToNotBeNull(column="stored_key")),
        NamedExpectation(NO_EXTRA_KEY, gxe.ExpectColumnValuesToNotBeNull(column="replayed_key")),
        NamedExpectation(
            COMPLETE,
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="stored_offset",
                column_B="required_offset",
                or_equal=True,
                ignore_row_if="either_value_is_missing",
            ),
        ),
        NamedExpectation(ONCE, gxe.ExpectColumnValuesToBeBetween(column="copy", max_value=1)),
    ]


def of_places(max_lag_s: float) -> list[NamedExpectation]:
    """State what is expected of each place, over a frame with the columns place and lag_s."""
    gxe = _great_expectations().expectations

    return [NamedExpectation(FRESH, gxe.ExpectColumnValuesToBeBetween(column="lag_s", max_value=max_lag_s))]


def of_partitions() -> list[NamedExpectation]:
    """State what is expected of each partition of a place: `lacking_share` of its keys (0 where only one is missing)."""
    gxe = _great_expectations().expectations

    most = TRUNCATED_SHARE
    return [
        NamedExpectation(
            WHOLE_PARTITIONS,
            gxe.ExpectColumnValuesToBeBetween(column="lacking_share", max_value=most, strict_max=True),
        )
    ]


def of_key_counts() -> list[NamedExpectation]:
    """State what is expected of each place's number of keys, where only a sample of them is compared."""
    gxe = _great_expectations().expectations

    return [NamedExpectation(KEY_COUNT, gxe.ExpectColumnValuesToBeInSet(column="difference", value_set=[0]))]


def partition_rows(comparison: DataFrame) -> DataFrame:
    """Return one row a place and partition: keys that there must be, and the share of them that is missing."""
    required = comparison.where(col("required_offset").isNotNull())
    counted = required.groupBy("place", col("partition").cast("string").alias("partition")).agg(
        F.count("*").alias("keys"), F.count_if(col("stored").isNull()).alias("missing")
    )
    share = F.when(col("missing") > 1, col("missing") / col("keys")).otherwise(0.0)
    return counted.withColumn("lacking_share", share)


def place_rows(places: Sequence[StoreReplica]) -> pd.DataFrame:
    """Return the places with the age of the oldest event beyond the cut of each."""
    return pd.DataFrame([{"place": place.name, "lag_s": place.lag_s} for place in places])


def judge(
    store: StoreName,
    frame: DataFrame | pd.DataFrame,
    stated: Sequence[NamedExpectation],
    index: Sequence[str],
) -> list[ExpectationResult]:
    """Return what came of each expectation over the rows of a frame; `index` names the columns that identify a row."""
    batch = _batch(frame)
    checked = len(frame) if isinstance(frame, pd.DataFrame) else frame.count()
    began_s = time.monotonic()
    # Whether each is met: Spark goes through the rows once for all of them.
    outcomes = _validate(batch, stated, {"result_format": "BOOLEAN_ONLY"})
    duration_s = (time.monotonic() - began_s) / len(stated)
    wrong = [one for one, outcome in zip(stated, outcomes, strict=True) if not outcome.success]
    # Of those that are not, how often and where. Not COMPLETE: that would fetch every failing row, and a store may have
    # lost all of its keys.
    in_detail = {
        "result_format": "SUMMARY",
        "unexpected_index_column_names": list(index),
        "partial_unexpected_count": MAX_SAMPLE,
    }
    found = dict(zip((one.name for one in wrong), _validate(batch, wrong, in_detail), strict=True))
    return [
        _failed(store, one.name, checked, found[one.name], index, duration_s)
        if one.name in found
        else ExpectationResult(store, one.name, checked, 0, duration_s)
        for one in stated
    ]


def _batch(frame: DataFrame | pd.DataFrame) -> Any:  # noqa: ANN401 - Great Expectations' own
    gx = _great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(enable=False)
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    sources = context.data_sources
    source = (
        sources.add_pandas("frame")
        if isinstance(frame, pd.DataFrame)
        else sources.add_spark("frame", persist=False)
    )
    asset = source.add_dataframe_asset("comparison")
    return asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})


def _validate(batch: Any, stated: Sequence[NamedExpectation], result_format: dict[str, Any]) -> list[Any]:  # noqa: ANN401
    """Return Great Expectations' outcome of each, in their order; raises QualityError where it came to none."""
    if not stated:
        return []
    suite = _great_expectations().ExpectationSuite(name="suite")
    for number, one in enumerate(stated):
        one.statement.meta = {"number": number}
        suite.add_expectation(one.statement)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = batch.validate(suite, result_format=result_format).results
    for outcome in outcomes:
        told = outcome.exception_info or {}
        for info in (told, *(value for value in told.values() if isinstance(value, dict))):
            if info.get("raised_exception"):
                raise QualityError(f"Great Expectations could not judge: {info.get('exception_message')}")
    return sorted(outcomes, key=lambda outcome: outcome.expectation_config.meta["number"])


def _failed(
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
        raise QualityError(f"Great Expectations says that {name!r} failed, and not how often: {found}")
    rows = found.get("partial_unexpected_index_list") or ()
    sample = tuple({column: str(row[column]) for column in index} for row in rows[:MAX_SAMPLE])
    return ExpectationResult(store, name, checked, failed, duration_s, sample)


def _great_expectations() -> Any:  # noqa: ANN401 - the module
    """Return Great Expectations, told neither to report its use nor to fill the log."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Deprecations in what it imports are its own affair.
        warnings.simplefilter("ignore")
        import great_expectations  # noqa: PLC0415 - seconds

    return great_expectations
