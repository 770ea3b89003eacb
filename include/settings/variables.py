"""Maps environment variables to settings: their names, and the sources of their values."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from include.errors import SettingsError
from include.settings.groups import SettingsGroup

PREFIX = "FOLDLAKE_"
# Ends the name of a variable that has the path of a file with the value.
FILE = "_FILE"


class VariableSource(PydanticBaseSettingsSource):
    """The environment, then the `.env` file for variables that are not set. An empty variable counts as not set.

    A variable with the ending `_FILE` has the path of a file with the value, such as a Docker secret.
    """

    def __init__(
        self, settings_cls: type[BaseSettings], variables: Iterable[str], env_file: Path | None
    ) -> None:
        super().__init__(settings_cls)
        self._variables = tuple(variables)
        self._env_file = env_file

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not used: `__call__` returns all values at once, by variable."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        """Return the values that are set, by variable; raises SettingsError for one that cannot be read."""
        from_file = {} if self._env_file is None else dotenv_values(self._env_file)
        sources = (os.environ, from_file)
        found = {
            variable: next(filter(None, (_read(source, variable) for source in sources)), None)
            for variable in self._variables
        }
        return {variable: value for variable, value in found.items() if value}


def _read(source: Mapping[str, str | None], variable: str) -> str | None:
    """Return the value that a source has for a variable; None or empty for none."""
    name = f"{PREFIX}{variable.upper()}"
    value, file = source.get(name), source.get(f"{name}{FILE}")
    if not file:
        return value
    try:
        content = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The file of {name}{FILE} cannot be read: {error}") from error
    if not content:
        raise SettingsError(f"The file of {name}{FILE} is empty: {file}")
    # A process passes its settings to the processes that it starts: they have both.
    if value and value != content:
        raise SettingsError(f"{name} and {name}{FILE} have different values: remove one of them.")
    return content


def variables_of(settings: type[BaseSettings]) -> dict[str, tuple[str, str]]:
    """Return variable -> (group, field); the group is empty for a field of the settings themselves."""
    found: dict[str, tuple[str, str]] = {}
    for name, field in settings.model_fields.items():
        if isinstance(field.default, SettingsGroup):
            for inner, inner_field in type(field.default).model_fields.items():
                extra = inner_field.json_schema_extra
                variable = str(extra["variable"]) if isinstance(extra, dict) else f"{name}_{inner}"
                found[variable] = (name, inner)
        else:
            found[name] = ("", name)
    return found
