"""What groups of settings are made of: their base class, the names of their variables, and how values are read."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr

LOOPBACK = "127.0.0.1"
# A secret that is not set. Like an empty text, it is false.
NO_SECRET = SecretStr("")


def named_variable(name: str) -> dict[str, Any]:
    """Name a field's variable, in lower case without the prefix, if it is not composed of group and field name."""
    return {"variable": name}


class SettingsGroup(BaseModel):
    """Settings of one part of Foldlake."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def split_names(value: object) -> object:
    """Return the parts of a text in the format of environment variables, `a,b`; any other value unchanged."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def absolute_path(value: Path | None) -> Path | None:
    """Return the absolute path: the processes of the stack have different working directories."""
    return None if value is None else value.expanduser().absolute()


def existing_file(value: Path | None) -> Path | None:
    """Return the absolute path of a file; raises ValueError if it does not exist, or cannot be read."""
    path = absolute_path(value)
    if path is None:
        return None
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise ValueError(f"The file {path} cannot be read: {error.strerror}") from error
