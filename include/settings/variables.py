"""Maps environment variables to settings: their names, and the sources of their values."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from include.settings.groups import SettingsGroup

PREFIX = "FOLDLAKE_"


class VariableSource(PydanticBaseSettingsSource):
    """The environment, then the `.env` file for variables that are not set. An empty variable counts as not set."""

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
        """Return the values that are set, by variable."""
        from_file = {} if self._env_file is None else dotenv_values(self._env_file)
        found = {variable: _read(from_file, variable) for variable in self._variables}
        return {variable: value for variable, value in found.items() if value}


def _read(from_file: dict[str, str | None], variable: str) -> str | None:
    name = f"{PREFIX}{variable.upper()}"
    return os.environ.get(name) or from_file.get(name)


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
