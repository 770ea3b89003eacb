"""A check after a compaction is not needed while the log has no new event and the table is the one that was read."""

import time
from dataclasses import replace

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.lake.tables import table_path
from include.quality import verified_stores
from include.quality.verified_stores import VerifiedStores, confirm_if_nothing_is_new
from include.quality.verified_tag import VerifiedMark
from include.settings import Settings
from spark_jobs.folding.replay import source_ends
from tests.support.faults.transactions import TransactionalWriter
from tests.support.lake.incremental_ledger import CHANGED, IncrementalLedger


def verify(ledger: IncrementalLedger, *stores: str) -> None:
    """Publish that these stores are verified as they are now."""
    ends = source_ends(ledger.settings.kafka_connection, ledger.name)
    table = DeltaTable(table_path(ledger.settings.lake_root, ledger.name))
    mark = VerifiedMark(ends, 1.0, {}, "full", 1.0)
    marks = {
        store: replace(mark, table_version=table.version() if store == "lake" else None) for store in stores
    }
    verified_stores.write(ledger.settings.home, VerifiedStores(ledger.name, 1, marks))


def test_a_check_is_needed_after_an_event_or_a_commit(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = IncrementalLedger(settings, "idle")
    ledger.spark = lake_spark
    ledger.change_and_store()
    assert not confirm_if_nothing_is_new(ledger.settings, ledger.model)
    verify(ledger, "lake")
    assert not confirm_if_nothing_is_new(ledger.settings, ledger.model)
    verify(ledger, "lake", "nodes")
    began_s = time.time()

    assert confirm_if_nothing_is_new(ledger.settings, ledger.model)
    confirmed = verified_stores.read(settings.home, ledger.name)
    assert confirmed is not None
    assert min(mark.cut_at_s for mark in confirmed.stores.values()) >= began_s

    ledger.store(ledger.records.values())
    assert not confirm_if_nothing_is_new(ledger.settings, ledger.model)
    verify(ledger, "lake", "nodes")
    TransactionalWriter(settings, ledger.name).abort([(b"a", b"aborted")] * 3)
    assert confirm_if_nothing_is_new(ledger.settings, ledger.model), "aborted records are no events"
    ledger.change(CHANGED[:1])
    assert not confirm_if_nothing_is_new(ledger.settings, ledger.model)
