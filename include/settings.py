"""Every setting of Foldlake: typed, from environment variables `FOLDLAKE_*` or a `.env` file, with defaults."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

CHECKOUT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """One immutable reading of the environment.

    Times end in `_s` (seconds) or `_ms`, sizes in `_bytes` or `_mb`. `.env.example` lists every variable.
    """

    model_config = SettingsConfigDict(
        env_prefix="FOLDLAKE_", env_file=CHECKOUT / ".env", env_ignore_empty=True, extra="ignore", frozen=True
    )

    # Where state lives
    home: Path = CHECKOUT / ".foldlake"
    tools: Path = CHECKOUT / ".foldlake" / "tools"

    # Base URL of a Maven repository to use in place of Maven Central, when the jars are prepared
    maven_mirror: str = ""

    # Ports of the embedded stack, all on loopback
    kafka_port: int = 9092
    kafka_controller_port: int = 9093
    registry_port: int = 8081
    airflow_port: int = 8080
    query_ports: Annotated[tuple[int, ...], NoDecode] = (5051, 5052)

    # Memory of the embedded broker's heap
    kafka_heap_mb: int = Field(default=512, ge=128)

    # Where the servers are; empty means the embedded stack's
    kafka_bootstrap: str = ""
    schema_registry_url: str = ""
    airflow_url: str = ""

    # A folder with further read-model modules, beside include/read_models/
    read_models_dir: Path | None = None

    # Airflow: its database (empty = SQLite), the password of its user `admin` (empty = generated), tasks at once
    airflow_database_url: str = ""
    airflow_password: str = ""
    airflow_parallelism: int = Field(default=8, ge=2)

    # Topics
    partitions: int = Field(default=4, ge=1, le=1024)
    replication_factor: int = Field(default=1, ge=1)

    # The stream driver
    stream_master: str = ""
    stream_driver_host: str = ""
    stream_driver_memory_mb: int = Field(default=1024, ge=512)
    stream_shuffle_partitions: int = Field(default=0, ge=0)
    stream_real_time_interval_s: int = Field(default=300, ge=5)
    stream_catch_up_threshold_events: int = Field(default=20_000, ge=0)
    stream_catch_up_batch_events: int = Field(default=1_000_000, ge=1)
    stream_spare_queries: int = Field(default=2, ge=0)
    checkpoint_dir: str = ""

    # The lake: root of its Delta tables (empty = in the home), and the Spark jobs that read and write them
    lake_dir: str = ""
    lake_master: str = "local[2]"
    lake_driver_memory_mb: int = Field(default=1536, ge=512)
    lake_shuffle_partitions: int = Field(default=4, ge=1)
    lake_niceness: int = Field(default=15, ge=0, le=19)
    lake_retention_h: float = Field(default=168, ge=0)
    compaction_interval_s: int = Field(default=300, ge=0)

    # The quality check: keys in a sample, how long it waits for events on their way, how far the lake may be behind;
    # where a failed check is told (empty = in the log only), and where reports are served (empty = by the first node)
    quality_sample_keys: int = Field(default=1_000, ge=1)
    quality_wait_s: float = Field(default=60.0, ge=0)
    quality_max_lake_age_s: float = Field(default=3600.0, gt=0)
    alert_webhook_url: str = ""
    reports_url: str = ""

    # Rebuilds: events in one batch of catching up, how long a replaced version is kept, how long nodes may take to load
    rebuild_batch_events: int = Field(default=250_000, ge=1)
    rebuild_grace_h: float = Field(default=24.0, ge=0)
    rebuild_hydrate_timeout_s: int = Field(default=1800, ge=10)

    # A query node (each of the processes of one node reads the same values)
    node_name: str = "node-1"
    node_port: int = 5051
    node_bind: str = "127.0.0.1"
    node_url: str = ""
    node_store_dir: Path | None = None
    node_http_workers: int = Field(default=2, ge=1)
    node_standby_replicas: int = Field(default=1, ge=0)
    node_session_timeout_s: int = Field(default=6, ge=6)
    node_release_grace_s: int = Field(default=120, ge=0)
    node_store_map_size_mb: int = Field(default=16_384, ge=64)
    node_command_timeout_s: float = Field(default=4.5, gt=0)

    @field_validator("query_ports", mode="before")
    @classmethod
    def _split_ports(cls, value: object) -> object:
        """Accept `5051,5052` as environment variables have it."""
        if isinstance(value, str):
            return tuple(int(part) for part in value.split(",") if part.strip())
        return value

    @field_validator("home", "tools", "node_store_dir", "read_models_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        """Make paths absolute: the processes of the stack have different working directories."""
        return None if value is None else value.expanduser().absolute()

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return self.kafka_bootstrap or f"127.0.0.1:{self.kafka_port}"

    @property
    def registry_url(self) -> str:
        """Base URL of the schema registry's Confluent-compatible API."""
        return self.schema_registry_url or f"http://127.0.0.1:{self.registry_port}/apis/ccompat/v7"

    @property
    def airflow_base_url(self) -> str:
        """Base URL of Airflow's API server."""
        return self.airflow_url or f"http://127.0.0.1:{self.airflow_port}"

    @property
    def checkpoints(self) -> str:
        """Root of the checkpoints: a local path, or the URI of a file system that all of a cluster's workers see."""
        return self.checkpoint_dir or str(self.home / "checkpoints")

    @property
    def lake(self) -> str:
        """Root of the Delta tables: a local path, or the URI of a file system that all of a cluster's workers see."""
        return self.lake_dir or str(self.home / "lake")

    @property
    def advertised_url(self) -> str:
        """URL at which other nodes reach this node."""
        return self.node_url or f"http://{self.node_bind}:{self.node_port}"

    @property
    def store_dir(self) -> Path:
        """Directory of this node's local store."""
        return self.node_store_dir or self.home / "nodes" / self.node_name
