"""Spark's settings for the stream driver, as data, because they are needed to launch the JVM."""

from collections import Counter
from pathlib import Path

from include.declarations.latency_override import stream_catalog
from include.declarations.load import load_catalog
from include.settings import Settings, TopicSettings
from include.status.flows import flows
from include.stream.pace import PACES
from include.stream.slot_planning import BATCH_SLOTS, shuffle_partitions
from include.versions.version_record import first_version

# Keeps Avro from allocating an arbitrary length read from a damaged record; no Kafka record is larger, nor has more items.
AVRO_LIMIT_BYTES = 16 * 1024 * 1024
AVRO_SIZES = ("string", "bytes", "collectionItems")
JAVA_OPTIONS = " ".join(
    (
        *(f"-Dorg.apache.avro.limits.{kind}.maxLength={AVRO_LIMIT_BYTES}" for kind in AVRO_SIZES),
        "-XX:+UseParallelGC",
    )
)

# By default Spark keeps its last thousand queries with the text of their plans, for a web page that is disabled here: a
# single quality check left 300 MB of them on the heap. Formatting the plans with all their expressions took half of the time of a check of
# few events.
FORGET_SOON: dict[str, str] = {
    "spark.sql.debug.maxToStringFields": "1",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
}

# By default, PySpark tells the JVM which line of Python makes a column, for error messages. That took a seventh of the time of tests of
# declarations.
QUICK_COLUMNS: dict[str, str] = {"spark.python.sql.dataFrameDebugging.enabled": "false"}

# Of jobs that show their progress: how often a running task reports how many records it has read.
REPORT_SOON: dict[str, str] = {"spark.executor.heartbeatInterval": "2s"}

# Hadoop's file system sets the permissions of files itself, and ignores the process's umask. Not on a cluster, whose workers may run as
# another user.
PRIVATE_FILES: dict[str, str] = {"spark.hadoop.fs.permissions.umask-mode": "077"}

# Nobody reads the text of a plan, which each commit makes for the web page that is disabled: by default, once as a tree and once in detail.
SHORT_PLANS: dict[str, str] = {"spark.sql.ui.explainMode": "simple"}

# The number of finished batches of a query on which Spark keeps its reports.
KEPT_BATCHES = 200

# The default renames a file through an interface that starts several processes (`readlink`) to do it.
LOCAL_CHECKPOINTS: dict[str, str] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}

STREAM_CONFIG: dict[str, str] = (
    FORGET_SOON
    | SHORT_PLANS
    | QUICK_COLUMNS
    | {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # Real-time mode requires a checkpoint of this format.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # How often a new snapshot of the state is uploaded to the checkpoint: what came after it is applied record by record at a restart.
        "spark.sql.streaming.stateStore.maintenanceInterval": "20s",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": str(KEPT_BATCHES),
        # The shortest interval of commits that Spark accepts, in milliseconds: a standby commits often to have the code of a commit compiled.
        "spark.sql.streaming.realTimeMode.minBatchDuration": "1000",
        # Each batch makes a new plan, and reuses the compiled code of an equal one. By default, Spark keeps 100 classes: twenty queries have more,
        # and compiled them in every batch. That took a quarter of an idle driver's processor time.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Spark would push the filter on decoded events below the decoding and decode every record twice.
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates,"
            "org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin"
        ),
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }
)

LOOPBACK = "127.0.0.1"
# The Spark master of a driver on this machine, whose number of task slots its launcher computes.
LOCAL_MASTER = "local"


def source_partitions(topics: TopicSettings, folders: tuple[Path, ...]) -> list[int]:
    """Return the number of partitions of each declared read model's source."""
    models = load_catalog(folders).models.values()
    return [model.partitions(topics) for model in models]


def stream_task_slots(settings: Settings) -> int:
    """Return the task slots that the stream driver needs.

    They are those of every flow with one live version of each read model, and of spare versions, each with all that the largest read model has.
    """
    catalog, stream = stream_catalog(settings), settings.stream
    first = {name: first_version(name, model.newest_fold_revision) for name, model in catalog.models.items()}
    active = list(flows(settings, catalog, first))
    of_version = Counter[str]()
    for flow in active:
        if flow.declared.version is not None:
            of_version[flow.declared.belongs_to] += flow.slots(stream)
    spare = stream.spare_queries * max(of_version.values(), default=0)
    shared = BATCH_SLOTS if any(flow.is_in_batches for flow in active) else 0
    return sum(flow.slots(stream) for flow in active) + spare + shared


def stream_master(settings: Settings) -> str:
    """Return the Spark master: the setting, or `local[N]` with a slot for every task that never ends."""
    if settings.stream.master:
        return settings.stream.master
    return f"local[{stream_task_slots(settings)}]"


def stream_config(settings: Settings) -> dict[str, str]:
    """Return every Spark setting of the stream driver except its master and jars."""
    partitions = source_partitions(settings.topics, settings.declaration_folders)
    config = STREAM_CONFIG | {
        "spark.driver.memory": f"{settings.stream.driver_memory_mb}m",
        # With Spark's default, waiting for shuffle buffers to fill was most of the latency at 1,000 events/s (p50 35 -> 11 ms).
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": str(
            PACES[settings.stream.pace].shuffle_wait_ms
        ),
        # A query whose source has a different number of partitions overrides this when it starts.
        "spark.sql.shuffle.partitions": str(shuffle_partitions(settings.stream, max(partitions))),
        # On a cluster, the driver claims only its own slots: a rebuild's catch-up runs beside it.
        "spark.cores.max": str(stream_task_slots(settings)),
        # A task that is repeated would write a route's outputs again: the query fails instead, and restarts from its checkpoint.
        "spark.task.maxFailures": "1",
    }
    if not settings.stream.master:
        config |= PRIVATE_FILES
    if not settings.checkpoint_dir:
        config |= LOCAL_CHECKPOINTS
    # A cluster's workers connect back to the driver: Spark detects the driver's host unless it is set.
    host = settings.stream.driver_host or ("" if settings.stream.master else LOOPBACK)
    return config | {"spark.driver.host": host, "spark.driver.bindAddress": host} if host else config
