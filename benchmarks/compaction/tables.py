"""The duration of merging 1 % of the keys as a table grows, and its files after many compactions, in one Spark session."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.lake.tables import table_path
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from spark_jobs.compaction import Compaction, compact
from tests.support.changelog_writer import ChangelogWriter

CHANGED_SHARE = 0.01
REPEATS = 3
MEGABYTE = 1e6


@dataclass
class Balances:
    """A directly written changelog of a read model like `balance`, and the expected content of its table.

    counts: event_count of each key, indexed by key number; a key's amount is a function of both.
    """

    settings: Settings
    name: str
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create the topics and a live version 1."""
        self.model = replace(READ_MODEL, name=self.name)
        self._writer = ChangelogWriter(self.settings, model=self.model)
        self._writer.make_topics()
        self._writer.register_live()

    def add_keys(self, upto: int) -> None:
        """Append the first record of new keys until there are `upto` keys."""
        first = len(self.counts)
        self.counts += [0] * (upto - first)
        self._append(range(first, upto))

    def change(self, keys: int, seed: int) -> None:
        """Append one more record for each of `keys` random keys."""
        self._append(random.Random(seed).sample(range(len(self.counts)), keys))

    def check(self) -> None:
        """Verify that the table contains exactly the newest record of each key."""
        table = DeltaTable(table_path(self.settings.lake_root, self.name))
        rows = table.to_pyarrow_table(columns=["key", "amount", "event_count"])
        numbers = pc.cast(pc.utf8_slice_codeunits(rows["key"], len("customer-")), "int64").to_numpy()
        counts = rows["event_count"].to_numpy()
        cents = pc.cast(pc.multiply(rows["amount"].cast(pa.decimal128(20, 2)), Decimal(100)), "int64")
        assert len(np.unique(numbers)) == len(numbers) == len(self.counts), "keys are missing or duplicated"
        assert np.array_equal(np.asarray(self.counts)[numbers], counts), "the event counts are not exact"
        assert np.array_equal((1 + numbers % 9_999) * counts, cents.to_numpy()), "the balances are not exact"

    def _append(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            count = self.counts[number] = self.counts[number] + 1
            self._writer.write(
                f"customer-{number}", Decimal((1 + number % 9_999) * count) / 100, count, count
            )
        self._writer.flush()


def grow(spark: SparkSession, settings: Settings, sizes: list[int]) -> None:
    """Grow a table to each size, change 1 % of its keys several times, and print the duration of the compactions."""
    if not sizes:
        return
    balances = Balances(settings, "growing")
    print("keys          changed   seconds (median)   each              files   MB")
    for size in sizes:
        balances.add_keys(size)
        compacted(spark, balances)
        taken = []
        for repeat_number in range(REPEATS):
            changed = int(size * CHANGED_SHARE)
            balances.change(changed, seed=size + repeat_number)
            done = compacted(spark, balances)
            assert done.counts.records == changed, "not every record was merged"
            taken.append(done.seconds)
        balances.check()
        each = " ".join(f"{seconds:.1f}" for seconds in taken)
        print(
            f"{size:>10,} {changed:>10,}   {statistics.median(taken):>16.1f}   {each:<16} {done.after.files:>6} "
            f"{done.after.bytes / MEGABYTE:>6.1f}   exact",
            flush=True,
        )


def repeat(spark: SparkSession, settings: Settings, compactions: int, keys: int) -> None:
    """Compact a small table many times, and print its size on disk at intervals."""
    if not compactions:
        return
    balances = Balances(settings, "small")
    balances.add_keys(keys)
    print("compactions  files  MB     stored files  stored MB  log files  seconds each (median)")
    taken: list[float] = []
    stored: list[int] = []
    for number in range(1, compactions + 1):
        balances.change(max(1, int(keys * CHANGED_SHARE)), seed=number)
        done = compacted(spark, balances)
        taken.append(done.seconds)
        stored.append(done.after.stored_files)
        if number % max(1, compactions // 10) == 0:
            usage = done.after
            print(
                f"{number:>11}  {usage.files:>5}  {usage.bytes / MEGABYTE:<5.1f}  {usage.stored_files:>12}  "
                f"{usage.stored_bytes / MEGABYTE:>9.1f}  {usage.log_files:>9}  {statistics.median(taken):.1f}",
                flush=True,
            )
            taken.clear()
    balances.check()
    print(f"at most {max(stored)} files stored at once; the table is exact")


def compacted(spark: SparkSession, balances: Balances) -> Compaction:
    """Compact the table, as the job does."""
    done = compact(spark, balances.settings, balances.model)
    assert done is not None
    return done
