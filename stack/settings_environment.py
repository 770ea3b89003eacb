"""Converts settings to environment variables, so that all processes of the stack use the same settings."""

from pathlib import Path

from include.settings import PREFIX, Settings


def settings_environment(settings: Settings) -> dict[str, str]:
    """Return all settings as `FOLDLAKE_*` variables, from which `Settings()` recreates equal settings."""
    return {
        f"{PREFIX}{variable.upper()}": _as_text(value)
        for variable, value in settings.by_variable().items()
        if value is not None
    }


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(_as_text(item) for item in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, Path | str) else repr(value)
