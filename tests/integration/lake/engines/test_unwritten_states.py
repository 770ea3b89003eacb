"""A state that cannot be written has no record: DuckDB leaves such a check to Spark, and says why."""

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, Mode, StoreName
from include.replay.check.run import run_check
from include.replay.check.target import OtherEngineError
from include.settings import Settings
from spark_jobs.quality_check import check
from tests.support.lake.checked_ledger import CheckedLedger

MODULE = """
from dataclasses import replace
from foldlake import StateField, decimal_type
from include.read_models.balance import model
STATE = (StateField("amount", decimal_type(3, 2)), StateField("largest", KIND))
FOLD = {{"amount": "sum(amount)", "largest": "max(CASE WHEN amount < 5 THEN 'small' END)"}}
DECLARATIONS = [
    replace(model.READ_MODEL, name={name!r}, source_topic={name!r}, key={key}, state=STATE, folds={{1: FOLD}})
]
"""


@pytest.mark.parametrize(
    ("name", "kind", "amounts", "reason"),
    [
        ("unwritten-sum", "['null', 'string']", (4, 4, 4), "out of the range of its record: .*"),
        ("unwritten-null", "'string'", (7,), "the state of 'unwritten' cannot be written"),
    ],
)
def test_a_check_with_a_state_that_cannot_be_written_is_left_to_spark(
    settings: Settings, lake_spark: SparkSession, name: str, kind: str, amounts: tuple[int, ...], reason: str
) -> None:
    ledger = CheckedLedger(settings, name, module=MODULE.replace("KIND", kind))
    for amount in amounts:
        ledger.add("unwritten", Decimal(amount))
    ledger.source.flush()
    request = CheckRequest(name, (StoreName.CHANGELOG,), Mode.FULL, name)

    with pytest.raises(OtherEngineError, match=reason):
        run_check(ledger.settings, request)

    result = check(lake_spark, ledger.settings, request)
    assert (result.passed, result.unwritten_total) == (True, 1), result.verdict
