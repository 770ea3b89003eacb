"""Every setting of Foldlake: typed, in groups, from environment variables `FOLDLAKE_*` or a `.env` file, with defaults.

The variable of a field is its group and its name (`kafka.port`: FOLDLAKE_KAFKA_PORT), unless the field names another one.
Times end in `_s` (seconds), `_ms` or `_h`, sizes in `_bytes` or `_mb`. `.env.example` lists every variable.
"""

from include.settings.auth import AuthSettings
from include.settings.choices import CheckEngine, Placement
from include.settings.groups import (
    AirflowSettings,
    KafkaSettings,
    LakeSettings,
    NodeSettings,
    QualitySettings,
    RebuildSettings,
    RedisSettings,
    RegistrySettings,
    RetentionSettings,
    StreamSettings,
    TopicSettings,
)
from include.settings.settings import (
    CHECKOUT,
    VARIABLES,
    Settings,
    serving_environment,
    setting_warnings,
    settings_environment,
)
from include.settings.variables import PREFIX, WRITTEN_SETTINGS, written_settings

__all__ = [
    "CHECKOUT",
    "PREFIX",
    "VARIABLES",
    "WRITTEN_SETTINGS",
    "AirflowSettings",
    "AuthSettings",
    "CheckEngine",
    "KafkaSettings",
    "LakeSettings",
    "NodeSettings",
    "Placement",
    "QualitySettings",
    "RebuildSettings",
    "RedisSettings",
    "RegistrySettings",
    "RetentionSettings",
    "Settings",
    "StreamSettings",
    "TopicSettings",
    "serving_environment",
    "setting_warnings",
    "settings_environment",
    "written_settings",
]
