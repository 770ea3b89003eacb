"""Spark's settings for the stream driver, as data: whoever launches the JVM needs them before it starts."""

from include.declarations.read_model import load_read_models
from include.settings import Settings
from include.stream.slot_planning import shuffle_partitions, task_slots

# A length that a damaged record claims must not make Avro allocate that much; no Kafka record is larger.
AVRO_LIMIT_BYTES = 16 * 1024 * 1024
JAVA_OPTIONS = " ".join(
    (
        *(f"-Dorg.apache.avro.limits.{kind}.maxLength={AVRO_LIMIT_BYTES}" for kind in ("string", "bytes")),
        "-XX:+UseParallelGC",
    )
)

# Spark remembers its last thousand queries with the text of their plans, for a page that we do not serve: a quality
# check alone left 300 MB of them on the heap.
FORGET_SOON: dict[str, str] = {
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
}

STREAM_CONFIG: dict[str, str] = FORGET_SOON | {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Real-time mode carries on a checkpoint of this format only.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    # Waiting for shuffle buffers to fill was most of the latency at 1,000 events/s (p50 35 -> 11 ms).
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "2",
    # The filter on decoded events would be pushed below the decoding, and decode every record a second time.
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

LOOPBACK = "127.0.0.1"


def source_partitions(settings: Settings) -> list[int]:
    """Return the number of partitions of each declared read model's source."""
    models = load_read_models(settings.read_models_dir).values()
    return [model.partitions(settings.topics) for model in models]


def stream_master(settings: Settings) -> str:
    """Return the Spark master: the setting, or `local[N]` with a slot for every task that never ends."""
    return settings.stream.master or f"local[{task_slots(settings, source_partitions(settings))}]"


def stream_config(settings: Settings) -> dict[str, str]:
    """Return every Spark setting of the stream driver but its master and jars."""
    partitions = source_partitions(settings)
    config = STREAM_CONFIG | {
        "spark.driver.memory": f"{settings.stream.driver_memory_mb}m",
        # A query whose source has another number of partitions sets its own when it starts.
        "spark.sql.shuffle.partitions": str(shuffle_partitions(settings, max(partitions))),
        # Of a cluster's cores only its own slots: a rebuild's catching up runs beside it.
        "spark.cores.max": str(task_slots(settings, partitions)),
    }
    # A cluster's workers connect back to the driver: its host is found by Spark unless it is set.
    host = settings.stream.driver_host or ("" if settings.stream.master else LOOPBACK)
    return config | {"spark.driver.host": host, "spark.driver.bindAddress": host} if host else config
