"""Turns settings back into environment variables, so that every process of the stack reads the same ones."""

from pathlib import Path

from include.settings import Settings


def settings_environment(settings: Settings) -> dict[str, str]:
    """Return all settings as `FOLDLAKE_*` variables; reading them gives equal settings."""
    prefix = str(Settings.model_config["env_prefix"])
    return {
        f"{prefix}{name.upper()}": _as_text(value)
        for name, value in settings.model_dump().items()
        if value is not None
    }


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_as_text(item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, Path | str) else repr(value)
