"""Maps environment variables to settings: their names, and the sources of their values."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from include.errors import SettingsError
from include.settings.base import SettingsGroup

PREFIX = "FOLDLAKE_"
# Ends the name of a variable that has the path of a file with the value.
FILE = "_FILE"
# The variable with the path of the settings that `./foldlake up` has written for the tasks of the embedded Airflow, a JSON object by variable. Each
# process of theirs reads it when it needs settings, so that Airflow need not restart for a change. The environment takes precedence.
WRITTEN_SETTINGS = "FOLDLAKE_STACK_SETTINGS"
# Renamed settings, old -> new, in lower case without the prefix. The old name keeps working, with a warning.
RENAMED = {
    "stream_in_batches": "stream_batch_mode",
    "stream_batches_hold_s": "stream_min_batch_time_s",
    "lake_events": "lake_event_tables",
    "node_http_client_share": "node_max_client_share",
}
# Begins the names of variables with which processes of Foldlake and its tests call each other; they are not settings.
NOT_SETTINGS = (
    "FOLDLAKE_STACK",
    "FOLDLAKE_PYTHON",
    "FOLDLAKE_LAUNCHER_PID",
    "FOLDLAKE_SCHEDULER_STARTED_S",
    "FOLDLAKE_TEST_",
)


class VariableSource(PydanticBaseSettingsSource):
    """The environment, then the written settings or the `.env` file for variables that are not set. An empty variable counts as not set.

    A variable with the ending `_FILE` has the path of a file with the value, such as a Docker secret. Of a renamed setting, the old
    variable is read if the same source does not have the new one.
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
        sources = _sources(self._env_file)
        old_names = {new: old for old, new in RENAMED.items()}
        found = {}
        for variable in self._variables:
            names = filter(None, (variable, old_names.get(variable)))
            values = (_read(source, name) for source, name in product(sources, names))
            found[variable] = next(filter(None, values), None)
        return {variable: value for variable, value in found.items() if value}


def variable_warnings(variables: Iterable[str], env_file: Path | None) -> Iterator[str]:
    """Yield a sentence for each variable in the environment and `.env` that is renamed, or that is no setting.

    variables: of all settings, in lower case without the prefix. env_file: the `.env` file; None for none.
    """
    known = {f"{PREFIX}{variable.upper()}" for variable in variables}
    renamed = {f"{PREFIX}{old.upper()}": f"{PREFIX}{new.upper()}" for old, new in RENAMED.items()}
    for source, location in zip(_sources(env_file), ("the environment", str(env_file)), strict=True):
        for full_name in sorted(source):
            # The names of some settings end like that of a file with a value.
            is_file = full_name.endswith(FILE) and full_name not in known
            name, ending = (full_name.removesuffix(FILE), FILE) if is_file else (full_name, "")
            if not name.startswith(PREFIX) or name in known or name.startswith(NOT_SETTINGS):
                continue
            if (new := renamed.get(name)) is None:
                closest = get_close_matches(name, [*known, *renamed], n=1, cutoff=0.8)
                hint = f" Did you mean {renamed.get(closest[0], closest[0])}{ending}?" if closest else ""
                yield f"{full_name} in {location} is ignored: there is no such setting.{hint}"
            elif source[full_name] and (source.get(new) or source.get(f"{new}{FILE}")):
                yield f"{full_name} in {location} is ignored, because {new} is set: remove it."
            elif source[full_name]:
                yield f"{full_name} in {location} has a new name: rename it to {new}{ending}."


def _sources(env_file: Path | None) -> tuple[Mapping[str, str | None], Mapping[str, str | None]]:
    """Return the variables of the environment, and those that have been written for this process, else those of the `.env` file."""
    if written := os.environ.get(WRITTEN_SETTINGS):
        return os.environ, written_settings(Path(written))
    return os.environ, {} if env_file is None else dotenv_values(env_file)


def written_settings(path: Path) -> dict[str, str]:
    """Return the settings of a file that `./foldlake up` has written, by variable; raises SettingsError if it cannot be read."""
    try:
        return {str(name): str(value) for name, value in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise SettingsError(
            f"The settings in {path} cannot be read: {error}. Hint: run `./foldlake up`."
        ) from error


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
