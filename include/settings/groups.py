"""The groups of settings: one frozen model for each part of Foldlake, with the default of every field.

Those of Kafka and the schema registry have modules of their own.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from include.settings.base import (
    LOOPBACK,
    NO_SECRET,
    SettingsGroup,
    absolute_path,
    named_variable,
    split_names,
)
from include.settings.choices import CheckEngine


class TopicSettings(SettingsGroup):
    """Defaults for the topics that Foldlake creates; a read model's declaration overrides the first two.

    flush_messages: records of a source topic's partition after which the brokers sync its file; 0 leaves that to the operating system.
    """

    partitions: int = Field(default=4, ge=1, le=1024, json_schema_extra=named_variable("partitions"))
    replication_factor: int = Field(default=1, ge=1, json_schema_extra=named_variable("replication_factor"))
    flush_messages: int = Field(default=0, ge=0, json_schema_extra=named_variable("flush_messages"))


class AirflowSettings(SettingsGroup):
    """Airflow. url: one of your own. database_url: empty for SQLite. password: empty for a generated one.

    start_delay_s: how long after the start of the embedded Airflow the jobs begin that nobody waits for.
    browser_url: the URL of the same API server for browsers, if `url` is only for the processes of this deployment.
    database_password: for a `database_url` without one.
    """

    url: str = ""
    browser_url: str = ""
    port: int = 8080
    database_url: SecretStr = NO_SECRET
    database_password: SecretStr = NO_SECRET
    password: SecretStr = NO_SECRET
    parallelism: int = Field(default=8, ge=2)
    start_delay_s: float = Field(default=150.0, ge=0)

    @property
    def base_url(self) -> str:
        """Base URL of Airflow's API server."""
        return self.url or f"http://{LOOPBACK}:{self.port}"

    @property
    def pages_url(self) -> str:
        """Base URL of Airflow's pages, for links and frames in a browser."""
        return self.browser_url or self.base_url


class StreamSettings(SettingsGroup):
    """The stream driver. shuffle_partitions: 0 for the number that include/stream/slot_planning.py chooses.

    longest_relaunch_delay_s: the longest pause between two launches of a driver that fails soon after each.
    real_time_interval_s: how often a query commits in real-time mode. idle_interval_s: how often one of dead letters with few events does. If that
    is rarer, folds and dead letters without events stop until the next one.
    pace: how long the queries collect events before they fold them: see include/stream/pace.py.
    min_batch_time_s: how long a query that has fallen behind in real time stays in batches at least. batch_interval_ms: how often a
    batch starts.
    standby: whether a second driver waits to take over; auto: on this machine, if there is memory for it.
    batch_mode: names of routes and read models that run in batches, whatever latency they declare; of a read model
        also `<name>:<interval in ms>`.
    periodic_interval_s: how often a periodic emission that declares no interval writes.
    allowed_lateness_s: for how long after the end of a window events of it are accepted. expiry_s: how long after its end, in the time of the
        newest events, a window leaves the stores.
    """

    master: str = ""
    driver_host: str = ""
    driver_memory_mb: int = Field(default=1024, ge=512)
    shuffle_partitions: int = Field(default=0, ge=0)
    real_time_interval_s: int = Field(default=60, ge=1)
    idle_interval_s: int = Field(default=600, ge=0)
    catch_up_threshold_events: int = Field(default=100_000, ge=0)
    catch_up_batch_events: int = Field(default=1_000_000, ge=1)
    spare_queries: int = Field(default=2, ge=0)
    longest_relaunch_delay_s: float = Field(default=300.0, ge=0)
    pace: Literal["latency", "balanced", "throughput"] = "balanced"
    min_batch_time_s: float = Field(default=60.0, gt=0)
    batch_interval_ms: int = Field(default=1000, ge=100)
    standby: Literal["auto", "on", "off"] = "auto"
    batch_mode: tuple[str, ...] = ()
    periodic_interval_s: float = Field(default=10.0, ge=0.5, le=86_400)
    allowed_lateness_s: int = Field(default=30, ge=0)
    expiry_s: int = Field(default=600, ge=10)

    @field_validator("batch_mode", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        """Accept the format of environment variables, `trend,loyalty`."""
        return split_names(value)


class LakeSettings(SettingsGroup):
    """The Delta tables, and the Spark jobs that read and write them.

    dir: empty for a folder in the home. keep_session_s: how long the job server waits for another job; 0: every job has its own process.
    event_tables: the topics whose events are rows of `lake/events/<topic>`; auto: those of the read models' events; off: none.
    """

    dir: str = ""
    master: str = "local[2]"
    driver_memory_mb: int = Field(default=1536, ge=512)
    shuffle_partitions: int = Field(default=4, ge=1)
    niceness: int = Field(default=15, ge=0, le=19)
    keep_session_s: int = Field(default=600, ge=0)
    retention_h: float = Field(default=168.0, ge=0)
    compaction_interval_s: int = Field(
        default=300, ge=0, json_schema_extra=named_variable("compaction_interval_s")
    )
    event_tables: tuple[str, ...] = ("auto",)

    @field_validator("event_tables", mode="before")
    @classmethod
    def _split_topics(cls, value: object) -> object:
        """Accept the format of environment variables, `trips,fares`."""
        return split_names(value)


class RedisSettings(SettingsGroup):
    """The Redis or Valkey of the read models that are placed in it. external_url: of your own, with its password; empty: the embedded one.

    embedded: auto: it runs if a read model is placed in it. prefix: what the names of all keys begin with. memory_mb: of the embedded
    server; when it is full, no more records are written. timeout_s: how long a node waits for an answer.
    """

    external_url: SecretStr = Field(default=NO_SECRET, json_schema_extra=named_variable("redis_url"))
    port: int = 6379
    embedded: Literal["auto", "on"] = "auto"
    prefix: str = Field(default="foldlake", min_length=1)
    memory_mb: int = Field(default=512, ge=16)
    timeout_s: float = Field(default=1.0, gt=0)

    @property
    def url(self) -> SecretStr:
        """URL of the server; may contain a password."""
        return self.external_url or SecretStr(f"redis://{LOOPBACK}:{self.port}/0")


class QualitySettings(SettingsGroup):
    """The quality check.

    engine: which engine checks. sample_keys: keys in a sample. wait_s: how long it waits for events in transit. max_lake_age_s: how far the lake may
    lag. alert_webhook_url: where a failed check is posted. reports_url: where reports are served; empty: by the first node.
    """

    engine: CheckEngine = Field(default=CheckEngine.AUTO, json_schema_extra=named_variable("check_engine"))
    sample_keys: int = Field(default=1_000, ge=1)
    wait_s: float = Field(default=60.0, ge=0)
    max_lake_age_s: float = Field(default=3600.0, gt=0)
    alert_webhook_url: SecretStr = Field(
        default=NO_SECRET, json_schema_extra=named_variable("alert_webhook_url")
    )
    reports_url: str = Field(default="", json_schema_extra=named_variable("reports_url"))


class RebuildSettings(SettingsGroup):
    """Rebuilds: events in one catch-up batch, how long a replaced version is kept, how long nodes may take to load."""

    batch_events: int = Field(default=250_000, ge=1)
    grace_h: float = Field(default=24.0, ge=0)
    hydrate_timeout_s: int = Field(default=1800, ge=10)


class RetentionSettings(SettingsGroup):
    """What the DAG `maintenance` keeps, in hours (0: everything), and how many ended versions of each read model.

    airflow_h: ended runs and logs of Airflow. reports_h: reports of quality checks. quality_results_h: rows of `lake/_quality`.
    """

    airflow_h: float = Field(default=24.0 * 30, ge=0)
    reports_h: float = Field(default=24.0 * 90, ge=0)
    quality_results_h: float = Field(default=24.0 * 365, ge=0)
    ended_versions: int = Field(default=100, ge=0)


class NodeSettings(SettingsGroup):
    """One query node; each of its processes reads the same values.

    store: name of a folder in query_api/store. max_age_s: a node is not ready while its answers can be older than this.
    allowed_hosts: hosts at which clients may address the node, besides loopback and its URL. allowed_origins: of other sites, whose pages may
    send requests and read the answers. peer_hosts: hosts of the nodes that
    this one asks; empty: loopback if it is on loopback itself, else any. placements: entries `<read model>=<placement>`, which
    replace what the read models declare (include/nodes/placements.py).

    http_*: of the HTTP server; the limits hold for each worker process. http_idle_timeout_s: a connection without progress for this
    long is closed. http_body_timeout_s: for a command's whole body. http_worker_timeout_s: a worker that answers nothing for this
    long is replaced. http_streams: open streams of changes and of records. max_client_share: what requests from one address may take of the waiting
    lookups, of the commands, and of the streams.
    access_log: whether each request is appended to a file, as JSON.
    peer_port, peer_workers: of the listener for other nodes and jobs, which exists unless FOLDLAKE_AUTH is none.
    """

    name: str = "node-1"
    port: int = 5051
    bind: str = LOOPBACK
    url: str = ""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    peer_hosts: tuple[str, ...] = ()
    store_dir: Path | None = None
    store: str = "lmdb"
    http_workers: int = Field(default=2, ge=1)
    http_connections: int = Field(default=4096, ge=16)
    http_idle_timeout_s: float = Field(default=30.0, ge=1)
    http_body_timeout_s: float = Field(default=5.0, gt=0)
    http_worker_timeout_s: int = Field(default=5, ge=2)
    http_waiting_lookups: int = Field(default=64, ge=1, le=64)
    http_commands: int = Field(default=64, ge=1, le=64)
    http_streams: int = Field(default=768, ge=1, le=10_000)
    max_client_share: float = Field(default=0.75, gt=0, le=1)
    peer_port: int = 5151
    peer_workers: int = Field(default=1, ge=1)
    placements: tuple[str, ...] = Field(default=(), json_schema_extra=named_variable("placements"))
    standby_replicas: int = Field(default=1, ge=0)
    session_timeout_s: int = Field(default=6, ge=6)
    max_age_s: float = Field(default=60.0, gt=0)
    release_grace_s: int = Field(default=120, ge=0)
    copy_from_peers: bool = True
    store_map_size_mb: int = Field(default=16_384, ge=64)
    command_timeout_s: float = Field(default=4.5, gt=0)
    access_log: bool = False

    @field_validator("allowed_hosts", "allowed_origins", "peer_hosts", "placements", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Accept the format of environment variables, `a.example,b.example`."""
        return split_names(value)

    @field_validator("store_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return absolute_path(value)
