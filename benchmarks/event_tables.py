"""Event tables of topics: the cost of appends, the size on disk, partitions of months and days, and a fold of columns instead of the log."""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, to_date

from benchmarks.support.deposits import BALANCE, Deposits
from benchmarks.support.report import machine_busy_s, print_environment
from demo.baskets.dataset import read_baskets
from demo.baskets.loading import load
from include.declarations.event_table import OFFSET_COLUMN, PARTITION_COLUMN
from include.declarations.load import load_catalog
from include.declarations.topic_tables import AUTO, TopicTable, topic_tables
from include.kafka.topic_state import topic_state
from include.lake.event_table_check import check_event_table
from include.lake.sql_tables import connect
from include.lake.tables import table_path
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.event_tables import Appends, append_new
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.replay import IdsOf, replayed_events
from spark_jobs.runtime.session import spark_session
from stack.tools import Tools
from tests.support.temporary_stack import temporary_stack

CUSTOMERS = 100_000
MEGABYTE = 1e6
REPEATS = 3
TURNOVER = "select occurred_month, sum(amount) from events_balance group by all"
A_DAY = """select count(*) from events_balance where "occurredOn" >= '2017-06-01' and "occurredOn" < '2017-06-02'"""


def main() -> None:
    """Measure a year of the demo's purchases, and a larger log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000, help="events of the larger log (2,000,000)")
    parser.add_argument("--small", type=int, default=1_000, help="events of a small append (1,000)")
    given = parser.parse_args()
    for events in (0, given.events):
        with temporary_stack(("kafka", "registry")) as settings:
            jars = Tools(settings.tools).jars("lake")
            spark = spark_session(
                "benchmark", lake_config(settings.lake), master=settings.lake.master, jars=jars
            )
            try:
                if events:
                    measure_large(spark, settings, events, given.small)
                else:
                    print_environment(settings)
                    measure_year(spark, settings)
            finally:
                spark.stop()


def measure_year(spark: SparkSession, settings: Settings) -> None:
    """Append the demo's purchases, and write the same rows in partitions of months and of days."""
    load(settings, BALANCE.source_topic, read_baskets().events)
    show("the demo's purchases, first append of a session", appended(spark, settings))
    rows = spark.read.format("delta").load(path(settings)).withColumn("day", to_date("occurredOn")).persist()
    rows.count()
    for partition in ("occurred_month", "day"):
        root = settings.home / f"by-{partition}"

        def write(partition: str = partition, root: Path = root) -> None:
            by = rows.repartition(partition)
            by.write.format("delta").partitionBy(partition).mode("overwrite").save(f"{root}/events/balance")

        seconds = timed(write)
        files = sorted(root.glob("events/balance/*/*.parquet"))
        connection = connect(str(root))
        year_ms, day_ms = (
            1e3 * timed(lambda query=query, connection=connection: connection.execute(query).fetchall())  # type: ignore[misc]
            for query in (TURNOVER, A_DAY)
        )
        print(
            f"partitions of {partition:<15} {len({file.parent for file in files}):>4} partitions, written in {seconds:.1f} s; turnover by "
            f"month {year_ms:,.0f} ms, purchases of a day {day_ms:,.0f} ms",
            flush=True,
        )
    rows.unpersist()


def measure_large(spark: SparkSession, settings: Settings, events: int, small: int) -> None:
    """Append a large log, then a few events several times; then fold all events from Kafka and from the table."""
    deposits = Deposits(settings, CUSTOMERS)
    deposits.append_many(settings, events, seed=1)
    done = appended(spark, settings)
    show(f"{events:,} events, first append of a session", done)
    megabytes = (topic_bytes(settings) / MEGABYTE, done[0].after.bytes / MEGABYTE)
    print("size                      log {:,.0f} MB, table {:,.0f} MB".format(*megabytes), flush=True)
    for number in range(REPEATS):
        deposits.append_many(settings, small, seed=number)
        show(f"{small:,} more events", appended(spark, settings))
    table = declared()
    print(f"check of the table        {timed(lambda: check_event_table(settings.lake_root, table)):.1f} s")
    print(
        f"comparison with the log   {timed(lambda: compare_with_log(settings, table)):.1f} s: {compare_with_log(settings, table)}"
    )
    topic = topic_state(settings.kafka_connection, BALANCE.source_topic)
    assert topic is not None
    sources: dict[str, Callable[[], DataFrame]] = {
        "Kafka": lambda: replayed_events(
            spark, settings, BALANCE, topic.ends, revision=1, ids_of=IdsOf.SUBJECT
        ),
        "the table": lambda: from_table(spark, settings),
    }
    expected = deposits.expected()
    for name, source in sources.items():
        seconds = statistics.median(timed(folded(source()).count) for _ in range(REPEATS))
        print(
            f"fold of all events from {name:<10} {seconds:.1f} s ({(events + small * REPEATS) / seconds:,.0f} events/s)",
            flush=True,
        )
        found = {row.key: (row.event_count, row.amount) for row in folded(source()).collect()}
        assert found == expected, f"the fold from {name} is not exact"


def folded(events: DataFrame) -> DataFrame:
    """Return the state of every key."""
    return fold(BALANCE, 1, events)


def from_table(spark: SparkSession, settings: Settings) -> DataFrame:
    """Return the events in the table with the columns of decoded events."""
    rows = spark.read.format("delta").load(path(settings))
    return rows.withColumns({"partition": col(PARTITION_COLUMN), "offset": col(OFFSET_COLUMN)})


def appended(spark: SparkSession, settings: Settings) -> tuple[Appends, float]:
    """Bring the table up to date; returns the result and the processor time of the machine in seconds."""
    busy_s = machine_busy_s()
    done = append_new(spark, settings, declared())
    assert done is not None
    return done, machine_busy_s() - busy_s


def show(name: str, done: tuple[Appends, float]) -> None:
    """Print what an append has taken."""
    update, busy_s = done
    print(
        f"{name:<50} {update.seconds:.1f} s, {busy_s:.1f} CPU s, {update.commits} commits, {update.after}",
        flush=True,
    )


def declared() -> TopicTable:
    """Return the event table of the balance's topic."""
    return topic_tables(load_catalog(), (AUTO,))[f"events/{BALANCE.source_topic}"]


def path(settings: Settings) -> str:
    """Return the table's folder."""
    return table_path(settings.lake_root, declared().name)


def topic_bytes(settings: Settings) -> int:
    """Return the size of the topic's segments on the embedded broker's disk."""
    segments = settings.home.glob(f"**/{BALANCE.source_topic}-[0-9]*/*.log")
    return sum(segment.stat().st_size for segment in segments)


def timed(work: Callable[[], object]) -> float:
    """Return how long something takes, in seconds."""
    started_s = time.monotonic()
    work()
    return time.monotonic() - started_s


if __name__ == "__main__":
    main()
