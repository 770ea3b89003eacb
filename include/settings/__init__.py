"""Every setting of Foldlake: typed, in groups, from environment variables `FOLDLAKE_*` or a `.env` file, with defaults.

The variable of a field is its group and its name (`kafka.port`: FOLDLAKE_KAFKA_PORT), unless the field names another one.
Times end in `_s` (seconds), `_ms` or `_h`, sizes in `_bytes` or `_mb`. `.env.example` lists every variable.
"""

from include.settings.auth import AuthSettings
from include.settings.choices import CheckEngine, LogFormat, Placement
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
from include.settings.kafka import KafkaConnection, KafkaSettings
from include.settings.observability import LogSettings, TraceSettings
from include.settings.registry import RegistryConnection, RegistrySettings
from include.settings.settings import (
    CHECKOUT,
    SECRETS,
    VARIABLES,
    Settings,
    folding_environment,
    serving_environment,
    setting_warnings,
    settings_environment,
)
from include.settings.tls import NodeTlsSettings, TlsSettings
from include.settings.variables import PREFIX, WRITTEN_SETTINGS, written_settings

__all__ = [
    "CHECKOUT",
    "PREFIX",
    "SECRETS",
    "VARIABLES",
    "WRITTEN_SETTINGS",
    "AirflowSettings",
    "AuthSettings",
    "CheckEngine",
    "KafkaConnection",
    "KafkaSettings",
    "LakeSettings",
    "LogFormat",
    "LogSettings",
    "NodeSettings",
    "NodeTlsSettings",
    "Placement",
    "QualitySettings",
    "RebuildSettings",
    "RedisSettings",
    "RegistryConnection",
    "RegistrySettings",
    "RetentionSettings",
    "Settings",
    "StreamSettings",
    "TlsSettings",
    "TopicSettings",
    "TraceSettings",
    "folding_environment",
    "serving_environment",
    "setting_warnings",
    "settings_environment",
    "written_settings",
]
