"""From the comparison to the verdict: what each store is judged by, and what is told of what failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.quality.check import LISTED_KEYS, CheckRequest, ExpectationResult, FailingKey, StoreName
from spark_jobs.quality import expectations as expected
from spark_jobs.quality.stores.base import Reading, Store, Target


@dataclass(frozen=True)
class StoreReading:
    """A store and what was read of it; its records are kept, so that they are the same whenever they are looked at."""

    store: Store
    reading: Reading

    @property
    def places(self) -> list[str]:
        """The names of its places."""
        return [place.name for place in self.reading.places]


def judge_all(
    target: Target, reads: Sequence[StoreReading], judged: DataFrame, fields: Sequence[str]
) -> list[ExpectationResult]:
    """Return what came of every expectation of every store."""
    stated = expected.of_keys(fields)
    # Of all stores at once: each alone is asked only about what is not met everywhere.
    met = {
        one.expectation
        for one in expected.judge(reads[0].store.name, judged, stated, ("place", "key"))
        if one.passed
    }
    rows = {row.place: row["count"] for row in judged.groupBy("place").count().collect()}
    partitions = expected.partition_rows(judged).toPandas()
    results: list[ExpectationResult] = []
    for read in reads:
        name, places = read.store.name, read.places
        checked = sum(rows.get(place, 0) for place in places)
        results += [ExpectationResult(name, one.name, checked, 0) for one in stated if one.name in met]
        doubtful = [one for one in stated if one.name not in met]
        if doubtful:
            mine = judged.where(col("place").isin(places))
            results += expected.judge(name, mine, doubtful, ("place", "key"))
        own = partitions[partitions["place"].isin(places)]
        results += expected.judge(name, own, expected.of_partitions(), ("place", "partition"))
        results += _of_the_store(target, read)
    return results


def _of_the_store(target: Target, read: StoreReading) -> list[ExpectationResult]:
    name, reading = read.store.name, read.reading
    results = []
    if name is StoreName.LAKE:
        most = target.settings.quality.max_lake_age_s
        results += expected.judge(
            name, expected.place_rows(reading.places), expected.of_places(most), ("place",)
        )
    finding = "; ".join(reading.faults)
    checked = max(len(reading.places), len(reading.faults))
    return [
        *results,
        ExpectationResult(name, expected.RIGHT_STORE, checked, len(reading.faults), finding=finding),
    ]


def whole_log(request: CheckRequest, lost: Mapping[int, int], partitions: int) -> ExpectationResult:
    """Return whether the log has its first events; where it has not, nothing is proved."""
    sample = tuple({"partition": str(p), "first_offset": str(offset)} for p, offset in lost.items())
    return ExpectationResult(request.stores[0], expected.WHOLE_LOG, partitions, len(lost), sample=sample)


def failing_keys(reads: Sequence[StoreReading], judged: DataFrame) -> tuple[tuple[FailingKey, ...], int]:
    """Return the first failing keys, both sides of each, and how many there are in all."""
    store_of_place = {place.name: read.store.name for read in reads for place in read.reading.places}
    failing = judged.where(F.size("failed") > 0)
    total = failing.count()
    rows = failing.orderBy("place", "key").limit(LISTED_KEYS).collect() if total else []
    keys = tuple(
        FailingKey(
            store_of_place[row.place],
            row.place,
            row.key,
            tuple(row.failed),
            {} if row.stored is None else row.stored.asDict(),
            {} if row.replayed is None else row.replayed.asDict(),
        )
        for row in rows
    )
    return keys, total


def faults(reads: Sequence[StoreReading]) -> list[str]:
    """Return why stores cannot be right as a whole."""
    return [fault for read in reads for fault in read.reading.faults]


def describe_lost_events(target: Target, lost: Mapping[int, int]) -> list[str]:
    """Say which partitions of the log have lost their beginning."""
    return [
        f"the log is not whole: {target.model.source_topic}/{partition} begins at offset {offset}, so nothing can be "
        "proved"
        for partition, offset in lost.items()
    ]


def describe_lake_lag(reads: Sequence[StoreReading], judged: DataFrame) -> list[str]:
    """Say how far behind each store is as a whole."""
    missing = F.coalesce(col("required_count") - F.coalesce(col("stored_count"), F.lit(0)), F.lit(0))
    late = judged.where((col("stored_offset") < col("required_offset")) | col("stored").isNull())
    counted = late.groupBy("place").agg(F.sum(F.greatest(missing, F.lit(0))).alias("events")).collect()
    by_place = {row.place: row.events for row in counted}
    said = []
    for read in reads:
        events = max((by_place.get(place.name, 0) for place in read.reading.places), default=0)
        if events:
            said.append(f"not complete: {read.store.name} is behind by {events:,} events")
    return said


def describe_replicas(read: StoreReading) -> str:
    """Name the places of a store, and what is to be noted of it."""
    names = ", ".join(place.name for place in read.reading.places)
    return "; ".join((names, *read.reading.notes))
