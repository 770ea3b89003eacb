"""A read model whose key has events in several partitions cannot be checked: the error names keys, partitions and the remedy."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from include.quality.check import StoreName, UncheckableError
from include.quality.report import Outcome, verdict_of
from include.settings import Settings
from tests.support.lake.checked_ledger import ONE_FOR_ALL, CheckedLedger


def test_a_key_with_events_in_several_partitions_is_uncheckable(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = CheckedLedger(settings, "mixed", key=ONE_FOR_ALL)
    ledger.append(10, 2)
    newest = max(ledger.records.values(), key=lambda record: record.source_offset)
    ledger.write_changelog([replace(newest, key="all")])
    partitions = sorted({record.source_partition for record in ledger.records.values()})

    with pytest.raises(UncheckableError) as refused:
        ledger.check(lake_spark, StoreName.CHANGELOG, run_id="mixed")

    assert "mixed cannot be checked: events of 1 of 1 key are in several source" in str(refused.value)
    assert f"key 'all' in partitions {', '.join(map(str, partitions))}" in str(refused.value)
    assert "declare `rekey=True` in the read model" in str(refused.value)

    verdict = verdict_of(settings.home, "mixed")
    assert verdict is not None
    assert verdict.outcome is Outcome.UNCHECKABLE
