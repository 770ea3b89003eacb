"""Every setting of Foldlake: typed, in groups, from environment variables `FOLDLAKE_*` or a `.env` file, with defaults.

The variable of a field is its group and its name (`kafka.port`: FOLDLAKE_KAFKA_PORT), unless the field names another one.
Times end in `_s` (seconds), `_ms` or `_h`, sizes in `_bytes` or `_mb`. `.env.example` lists every variable.
"""

import os
from pathlib import Path
from typing import Any, Self

from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

CHECKOUT = Path(__file__).resolve().parent.parent
PREFIX = "FOLDLAKE_"
LOOPBACK = "127.0.0.1"


def _variable(name: str) -> dict[str, Any]:
    """Name a field's variable, in lower case without the prefix, where it is not made of group and name."""
    return {"variable": name}


class SettingsGroup(BaseModel):
    """Settings of one part of Foldlake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(SettingsGroup):
    """Kafka. bootstrap: servers of your own; empty: the embedded broker, with its ports and heap."""

    bootstrap: str = ""
    port: int = 9092
    controller_port: int = 9093
    heap_mb: int = Field(default=512, ge=128)

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return self.bootstrap or f"{LOOPBACK}:{self.port}"


class TopicSettings(SettingsGroup):
    """The topics that Foldlake creates, where a declaration does not say otherwise."""

    partitions: int = Field(default=4, ge=1, le=1024, json_schema_extra=_variable("partitions"))
    replication_factor: int = Field(default=1, ge=1, json_schema_extra=_variable("replication_factor"))


class RegistrySettings(SettingsGroup):
    """The schema registry. external_url: one of your own; empty: the embedded one."""

    external_url: str = Field(default="", json_schema_extra=_variable("schema_registry_url"))
    port: int = 8081

    @property
    def url(self) -> str:
        """Base URL of the schema registry's Confluent-compatible API."""
        return self.external_url or f"http://{LOOPBACK}:{self.port}/apis/ccompat/v7"


class AirflowSettings(SettingsGroup):
    """Airflow. url: one of your own. database_url: empty for SQLite. password: empty for a generated one."""

    url: str = ""
    port: int = 8080
    database_url: str = ""
    password: str = ""
    parallelism: int = Field(default=8, ge=2)

    @property
    def base_url(self) -> str:
        """Base URL of Airflow's API server."""
        return self.url or f"http://{LOOPBACK}:{self.port}"


class StreamSettings(SettingsGroup):
    """The stream driver. shuffle_partitions: 0 for as many as the source topic has."""

    master: str = ""
    driver_host: str = ""
    driver_memory_mb: int = Field(default=1024, ge=512)
    shuffle_partitions: int = Field(default=0, ge=0)
    real_time_interval_s: int = Field(default=300, ge=5)
    catch_up_threshold_events: int = Field(default=20_000, ge=0)
    catch_up_batch_events: int = Field(default=1_000_000, ge=1)
    spare_queries: int = Field(default=2, ge=0)


class LakeSettings(SettingsGroup):
    """The Delta tables, and the Spark jobs that read and write them. dir: empty for a folder in the home."""

    dir: str = ""
    master: str = "local[2]"
    driver_memory_mb: int = Field(default=1536, ge=512)
    shuffle_partitions: int = Field(default=4, ge=1)
    niceness: int = Field(default=15, ge=0, le=19)
    retention_h: float = Field(default=168.0, ge=0)
    compaction_interval_s: int = Field(
        default=300, ge=0, json_schema_extra=_variable("compaction_interval_s")
    )


class QualitySettings(SettingsGroup):
    """The quality check.

    sample_keys: keys in a sample. wait_s: how long it waits for events on their way. max_lake_age_s: how far the lake may
    lag. alert_webhook_url: where a failed check is posted. reports_url: where reports are served; empty: by the first node.
    """

    sample_keys: int = Field(default=1_000, ge=1)
    wait_s: float = Field(default=60.0, ge=0)
    max_lake_age_s: float = Field(default=3600.0, gt=0)
    alert_webhook_url: str = Field(default="", json_schema_extra=_variable("alert_webhook_url"))
    reports_url: str = Field(default="", json_schema_extra=_variable("reports_url"))


class RebuildSettings(SettingsGroup):
    """Rebuilds: events in one catch-up batch, how long a replaced version is kept, how long nodes may take to load."""

    batch_events: int = Field(default=250_000, ge=1)
    grace_h: float = Field(default=24.0, ge=0)
    hydrate_timeout_s: int = Field(default=1800, ge=10)


class NodeSettings(SettingsGroup):
    """One query node; each of its processes reads the same values. store: name of a folder in query_api/store."""

    name: str = "node-1"
    port: int = 5051
    bind: str = LOOPBACK
    url: str = ""
    store_dir: Path | None = None
    store: str = "lmdb"
    http_workers: int = Field(default=2, ge=1)
    standby_replicas: int = Field(default=1, ge=0)
    session_timeout_s: int = Field(default=6, ge=6)
    release_grace_s: int = Field(default=120, ge=0)
    store_map_size_mb: int = Field(default=16_384, ge=64)
    command_timeout_s: float = Field(default=4.5, gt=0)

    @property
    def advertised_url(self) -> str:
        """URL at which other nodes reach this node."""
        return self.url or f"http://{self.bind}:{self.port}"

    @field_validator("store_dir", mode="after")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return _absolute(value)


class Settings(BaseSettings):
    """One immutable reading of the environment. Values by variable (`kafka_port=9092`) go before what is read.

    home: where all state lives. tools: the prepared environments, jars and servers. maven_mirror: base URL of a Maven
    repository in place of Maven Central. query_ports: one embedded query node for each. read_models_dir: a folder with
    further read models. checkpoint_dir: root of the checkpoints; empty for a folder in the home.
    """

    model_config = SettingsConfigDict(env_file=CHECKOUT / ".env", extra="forbid", frozen=True)

    home: Path = CHECKOUT / ".foldlake"
    tools: Path = CHECKOUT / ".foldlake" / "tools"
    maven_mirror: str = ""
    query_ports: tuple[int, ...] = (5051, 5052)
    read_models_dir: Path | None = None
    checkpoint_dir: str = ""
    kafka: KafkaSettings = KafkaSettings()
    topics: TopicSettings = TopicSettings()
    registry: RegistrySettings = RegistrySettings()
    airflow: AirflowSettings = AirflowSettings()
    stream: StreamSettings = StreamSettings()
    lake: LakeSettings = LakeSettings()
    quality: QualitySettings = QualitySettings()
    rebuild: RebuildSettings = RebuildSettings()
    node: NodeSettings = NodeSettings()

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return settings from these values by variable, then the environment; no `.env` file plays a part."""
        return cls(_env_file=None, **values)  # type: ignore[arg-type]  # values by variable

    def changed(self, **values: object) -> Self:
        """Return settings that differ in these values by variable; they are not validated."""
        groups: dict[str, dict[str, object]] = {}
        own: dict[str, object] = {}
        for variable, value in values.items():
            group, field = VARIABLES[variable]
            if group:
                groups.setdefault(group, {})[field] = value
            else:
                own[field] = value
        changed = {name: getattr(self, name).model_copy(update=fields) for name, fields in groups.items()}
        return self.model_copy(update=own | changed)

    def by_variable(self) -> dict[str, object]:
        """Return every value by its variable, in lower case without the prefix."""
        return {
            variable: getattr(getattr(self, group) if group else self, field)
            for variable, (group, field) in VARIABLES.items()
        }

    @property
    def checkpoints(self) -> str:
        """Root of the checkpoints: a local path, or the URI of a file system that all of a cluster's workers see."""
        return self.checkpoint_dir or str(self.home / "checkpoints")

    @property
    def lake_root(self) -> str:
        """Root of the Delta tables: a local path, or the URI of a file system that all of a cluster's workers see."""
        return self.lake.dir or str(self.home / "lake")

    @property
    def store_dir(self) -> Path:
        """Directory of this node's local store."""
        return self.node.store_dir or self.home / "nodes" / self.node.name

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - VariableSource reads the environment
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not used
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read values given, then the environment, then the `.env` file."""
        env_file = dotenv_settings.env_file if isinstance(dotenv_settings, DotEnvSettingsSource) else None
        return init_settings, VariableSource(settings_cls, None if env_file is None else Path(str(env_file)))

    @model_validator(mode="before")
    @classmethod
    def _into_groups(cls, values: dict[str, Any]) -> dict[str, Any]:
        grouped: dict[str, Any] = {}
        for variable, value in values.items():
            group, field = VARIABLES.get(variable, ("", variable))
            if group:
                grouped.setdefault(group, {})[field] = value
            else:
                grouped[field] = value
        return grouped

    @field_validator("query_ports", mode="before")
    @classmethod
    def _split_ports(cls, value: object) -> object:
        """Accept `5051,5052` as environment variables have it."""
        if isinstance(value, str):
            return tuple(int(part) for part in value.split(",") if part.strip())
        return value

    @field_validator("home", "tools", "read_models_dir", mode="after")
    @classmethod
    def _absolute_paths(cls, value: Path | None) -> Path | None:
        return _absolute(value)


class VariableSource(PydanticBaseSettingsSource):
    """The environment, and where a variable is not set there, the `.env` file. An empty variable counts as not set."""

    def __init__(self, settings_cls: type[BaseSettings], env_file: Path | None) -> None:
        super().__init__(settings_cls)
        self._env_file = env_file

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not asked: values come by variable, all at once."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        """Return the values that are set, by variable."""
        from_file = {} if self._env_file is None else dotenv_values(self._env_file)
        found = {variable: _read(from_file, variable) for variable in VARIABLES}
        return {variable: value for variable, value in found.items() if value}


def _read(from_file: dict[str, str | None], variable: str) -> str | None:
    name = f"{PREFIX}{variable.upper()}"
    return os.environ.get(name) or from_file.get(name)


def _variables() -> dict[str, tuple[str, str]]:
    """Return variable -> (group, field); the group is empty for what stands by itself."""
    found: dict[str, tuple[str, str]] = {}
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, SettingsGroup):
            for inner, inner_field in type(field.default).model_fields.items():
                extra = inner_field.json_schema_extra
                variable = str(extra["variable"]) if isinstance(extra, dict) else f"{name}_{inner}"
                found[variable] = (name, inner)
        else:
            found[name] = ("", name)
    return found


def _absolute(value: Path | None) -> Path | None:
    """Make a path absolute: the processes of the stack have different working directories."""
    return None if value is None else value.expanduser().absolute()


VARIABLES = _variables()
