"""All settings as one immutable value, and as the environment variables from which a process reads equal settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from include.errors import SettingsError
from include.settings.auth import AuthSettings
from include.settings.base import NO_SECRET, absolute_path, split_names
from include.settings.groups import (
    AirflowSettings,
    LakeSettings,
    NodeSettings,
    QualitySettings,
    RebuildSettings,
    RedisSettings,
    RetentionSettings,
    StreamSettings,
    TopicSettings,
)
from include.settings.kafka import KafkaConnection, KafkaSettings, kafka_secrets_path
from include.settings.observability import LogSettings, TraceSettings
from include.settings.registry import RegistrySettings
from include.settings.systems import require_systems, system_folder, systems_of_home
from include.settings.tls import NodeTlsSettings, TlsSettings
from include.settings.variables import PREFIX, VariableSource, variable_warnings, variables_of

CHECKOUT = Path(__file__).resolve().parent.parent.parent


class Settings(BaseSettings):
    """The settings at one time, immutable. Values passed by variable (`kafka_port=9092`) override the environment and `.env`.

    home: where all state lives. tools: the prepared environments, jars and servers. maven_mirror: base URL of a Maven repository used instead of Maven
    Central. query_ports: one embedded query node for each. systems: names of the systems in demo/systems that are enabled, beside those that
    `./foldlake systems` has enabled. read_models_dir: a folder with additional read models. checkpoint_dir: root of the checkpoints; empty for a
    folder in the home. pseudonym_key: the key of the hashes that replace personal values in the outputs of routes; empty for a random one in the home.
    """

    model_config = SettingsConfigDict(
        env_file=CHECKOUT / ".env", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    home: Path = CHECKOUT / ".foldlake"
    tools: Path = CHECKOUT / ".foldlake" / "tools"
    maven_mirror: str = ""
    query_ports: tuple[int, ...] = (5051, 5052)
    systems: tuple[str, ...] = ()
    read_models_dir: Path | None = None
    checkpoint_dir: str = ""
    pseudonym_key: SecretStr = NO_SECRET
    kafka: KafkaSettings = KafkaSettings()
    topics: TopicSettings = TopicSettings()
    registry: RegistrySettings = RegistrySettings()
    airflow: AirflowSettings = AirflowSettings()
    stream: StreamSettings = StreamSettings()
    lake: LakeSettings = LakeSettings()
    quality: QualitySettings = QualitySettings()
    rebuild: RebuildSettings = RebuildSettings()
    retention: RetentionSettings = RetentionSettings()
    node: NodeSettings = NodeSettings()
    redis: RedisSettings = RedisSettings()
    auth: AuthSettings = AuthSettings()
    tls: TlsSettings = TlsSettings()
    node_tls: NodeTlsSettings = NodeTlsSettings()
    log: LogSettings = LogSettings()
    traces: TraceSettings = TraceSettings()

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - of any variable
        """Read and validate all values; raises SettingsError with the variables that are wrong."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(_explained(error)) from error

    @classmethod
    def of(cls, **values: object) -> Self:
        """Return settings from these values by variable, then the environment; ignore the `.env` file."""
        return cls(_env_file=None, **values)

    def changed(self, **values: object) -> Self:
        """Return settings that differ in these values by variable; they are not validated."""
        groups: dict[str, dict[str, object]] = {}
        own: dict[str, object] = {}
        for variable, value in values.items():
            group, field = VARIABLES[variable]
            # A secret may be given as a text.
            given = SecretStr(value) if variable in SECRETS and isinstance(value, str) else value
            if group:
                groups.setdefault(group, {})[field] = given
            else:
                own[field] = given
        changed = {name: getattr(self, name).model_copy(update=fields) for name, fields in groups.items()}
        return self.model_copy(update=own | changed)

    def by_variable(self) -> dict[str, object]:
        """Return every value by its variable, in lower case without the prefix."""
        return {
            variable: getattr(getattr(self, group) if group else self, field)
            for variable, (group, field) in VARIABLES.items()
        }

    @property
    def kafka_connection(self) -> KafkaConnection:
        """How clients connect to Kafka."""
        return KafkaConnection(self.kafka.bootstrap_servers, self.kafka, kafka_secrets_path(self.home))

    @property
    def enabled_systems(self) -> tuple[str, ...]:
        """The systems of the setting and those that `./foldlake systems` has enabled in this home, each once."""
        return tuple(dict.fromkeys((*self.systems, *systems_of_home(self.home))))

    @property
    def declaration_folders(self) -> tuple[Path, ...]:
        """The folders of declarations beside `include/read_models`: those of the enabled systems, and `read_models_dir`."""
        own = () if self.read_models_dir is None else (self.read_models_dir,)
        return (*(system_folder(name) for name in self.enabled_systems), *own)

    @property
    def checkpoints(self) -> str:
        """Root of the checkpoints: a local path, or the URI of a file system that all workers of a cluster can reach."""
        return self.checkpoint_dir or str(self.home / "checkpoints")

    @property
    def lake_root(self) -> str:
        """Root of the Delta tables: a local path, or the URI of a file system that all workers of a cluster can reach."""
        return self.lake.dir or str(self.home / "lake")

    @property
    def reports_base_url(self) -> str:
        """Base URL of the server of the quality checks' reports."""
        return self.quality.reports_url or self.loopback_url(self.query_ports[0])

    def loopback_url(self, port: int) -> str:
        """Return the URL at which callers on this machine reach the node with this port."""
        return f"{self._scheme}://127.0.0.1:{port}"

    @property
    def caller_url(self) -> str:
        """URL at which callers reach this node."""
        return self.node.url or f"{self._scheme}://{_authority(self.node.bind, self.node.port)}"

    @property
    def advertised_url(self) -> str:
        """URL at which other nodes and jobs reach this node."""
        if not self.has_peer_listener:
            return self.caller_url
        return f"https://{_authority(urlsplit(self.caller_url).hostname or '', self.node.peer_port)}"

    @property
    def has_peer_listener(self) -> bool:
        """Whether nodes and jobs reach a node by mutual TLS, on a port of its own."""
        return self.auth.is_on

    @property
    def _scheme(self) -> str:
        return "https" if self.tls.cert_file else "http"

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
        """Return the sources in order of precedence: values passed, the environment, the `.env` file."""
        env_file = dotenv_settings.env_file if isinstance(dotenv_settings, DotEnvSettingsSource) else None
        return init_settings, VariableSource(
            settings_cls, VARIABLES, None if env_file is None else Path(str(env_file))
        )

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
        """Accept the format of environment variables, `5051,5052`."""
        if isinstance(value, str):
            return tuple(int(part) for part in value.split(",") if part.strip())
        return value

    @field_validator("systems", mode="before")
    @classmethod
    def _split_systems(cls, value: object) -> object:
        """Accept the format of environment variables, `pos,orders`."""
        return split_names(value)

    @field_validator("systems", mode="after")
    @classmethod
    def _known_systems(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return require_systems(value)

    @field_validator("home", "tools", "read_models_dir", mode="after")
    @classmethod
    def _absolute_paths(cls, value: Path | None) -> Path | None:
        return absolute_path(value)


VARIABLES = variables_of(Settings)
# The variables, in lower case without the prefix, whose values are secrets.
SECRETS = frozenset(
    name for name, value in Settings.model_construct().by_variable().items() if isinstance(value, SecretStr)
)


def setting_warnings() -> Iterator[str]:
    """Yield a sentence for each variable in the environment and the checkout's `.env` that is renamed, or that is no setting."""
    return variable_warnings(VARIABLES, CHECKOUT / ".env")


def _explained(error: ValidationError) -> str:
    """Return what is wrong with which variable; without the values, which may be secret."""
    variables = {location: f"{PREFIX}{variable.upper()}" for variable, location in VARIABLES.items()}
    found = []
    for one in error.errors():
        names = [str(part) for part in one["loc"]]
        location = (names[0], names[1]) if len(names) > 1 else ("", names[0])
        problem = f"{one['msg'].removeprefix('Value error, ').removesuffix('.')}."
        is_group = location[0] == "" and location not in variables  # its message names its variables
        found.append(problem if is_group else f"{variables.get(location, '.'.join(names))}: {problem}")
    return " ".join(
        [*found, "Correct it in the environment or in `.env`: .env.example describes each setting."]
    )


# Settings that only Airflow and the jobs that it starts read. With these, a change replaces neither the stream driver nor the query nodes.
JOB_SETTINGS = frozenset(
    f"{PREFIX}{variable.upper()}"
    for variable, (group, field) in VARIABLES.items()
    if group in {"rebuild", "retention"}
    or (group == "quality" and field in {"engine", "sample_keys", "wait_s", "max_lake_age_s"})
    or (group == "airflow" and field not in {"url", "browser_url", "port"})
)


def serving_environment(settings: Settings) -> dict[str, str]:
    """Return the settings of processes that serve or fold, by variable: all but those of jobs, and the passwords of Airflow."""
    return {name: value for name, value in settings_environment(settings).items() if name not in JOB_SETTINGS}


# Settings that only query nodes read, and what reaches them. With these, a change does not replace the stream driver.
NODE_SETTINGS = frozenset(
    f"{PREFIX}{variable.upper()}"
    for variable, (group, field) in VARIABLES.items()
    if group in {"node", "auth", "tls", "node_tls", "traces"} or (group == "" and field == "query_ports")
)


def folding_environment(settings: Settings) -> dict[str, str]:
    """Return the settings of the stream driver, by variable: those of processes that serve or fold, without those of query nodes."""
    return {name: value for name, value in serving_environment(settings).items() if name not in NODE_SETTINGS}


def settings_environment(settings: Settings) -> dict[str, str]:
    """Return all settings as `FOLDLAKE_*` variables, with the secrets, from which `Settings()` recreates equal settings."""
    return {
        f"{PREFIX}{variable.upper()}": _as_text(value)
        for variable, value in settings.by_variable().items()
        if value is not None
    }


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _as_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(_as_text(item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, Path | str) else repr(value)
