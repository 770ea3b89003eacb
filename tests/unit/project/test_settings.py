"""Settings: parsed from the environment, converted back to it, and all listed in .env.example; misspelt and old names are reported."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from include.errors import SettingsError
from include.settings import (
    CHECKOUT,
    PREFIX,
    VARIABLES,
    WRITTEN_SETTINGS,
    Settings,
    setting_warnings,
    settings_environment,
)
from include.settings.variables import FILE, RENAMED, variable_warnings


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("FOLDLAKE_"):
            monkeypatch.delenv(name)


def listed() -> dict[str, str]:
    text = (CHECKOUT / ".env.example").read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_env_example_lists_every_setting_and_no_other() -> None:
    assert set(listed()) == {f"{PREFIX}{name.upper()}" for name in VARIABLES}


def test_env_example_shows_the_defaults() -> None:
    defaults = settings_environment(Settings.of())
    shown = {name: value for name, value in listed().items() if value}

    assert shown == {name: defaults[name] for name in shown}


def test_a_copied_env_example_changes_nothing() -> None:
    assert Settings(_env_file=CHECKOUT / ".env.example") == Settings.of()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"query_ports": (6001, 6002, 6003)},
        {"home": Path("/with space 100%"), "node_store_dir": Path("/store")},
        {"kafka_bootstrap": "a:1,b:2", "node_command_timeout_s": 0.25},
    ],
)
def test_settings_round_trip_through_the_environment(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.of(**changed)

    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)

    assert Settings.of() == settings


def test_written_settings_take_the_place_of_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, env_file = tmp_path / "settings.json", tmp_path / ".env"
    written.write_text(json.dumps(settings_environment(Settings.of(partitions=3, kafka_heap_mb=300))))
    env_file.write_text("FOLDLAKE_PARTITIONS=5\n")
    monkeypatch.setenv(WRITTEN_SETTINGS, str(written))
    monkeypatch.setenv("FOLDLAKE_KAFKA_HEAP_MB", "400")

    found = Settings(_env_file=env_file)

    assert (found.topics.partitions, found.kafka.heap_mb) == (3, 400)
    written.write_text("[")
    with pytest.raises(SettingsError, match=r"settings\.json cannot be read.*foldlake up"):
        Settings()


def test_each_wrong_value_is_an_error_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_KAFKA_PORT", "secret")
    monkeypatch.setenv("FOLDLAKE_QUERY_PORTS", "a,b")

    with pytest.raises(SettingsError) as error:
        Settings.of()

    assert re.search("FOLDLAKE_KAFKA_PORT: .* valid integer", str(error.value))
    assert "FOLDLAKE_QUERY_PORTS: " in str(error.value)
    assert "secret" not in str(error.value)


def test_a_value_can_be_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("pass word\n")
    monkeypatch.setenv("FOLDLAKE_PSEUDONYM_KEY_FILE", str(secret))

    assert Settings.of().pseudonym_key.get_secret_value() == "pass word"

    # As in a process that this one starts.
    monkeypatch.setenv("FOLDLAKE_PSEUDONYM_KEY", "pass word")
    assert Settings.of().pseudonym_key.get_secret_value() == "pass word"


def test_a_file_in_the_environment_takes_precedence_over_a_value_in_env(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "port").write_text("7001")
    (tmp_path / ".env").write_text(f"FOLDLAKE_KAFKA_PORT=7002\nFOLDLAKE_REGISTRY_PORT_FILE={tmp_path}/port\n")
    monkeypatch.setenv("FOLDLAKE_KAFKA_PORT_FILE", str(tmp_path / "port"))

    found = Settings(_env_file=tmp_path / ".env")

    assert (found.kafka.port, found.registry.port) == (7001, 7001)


@pytest.mark.parametrize(
    ("content", "value", "message"),
    [
        (None, "", "The file of FOLDLAKE_PSEUDONYM_KEY_FILE cannot be read: .*No such file"),
        ("\n", "", "The file of FOLDLAKE_PSEUDONYM_KEY_FILE is empty"),
        ("one", "two", "FOLDLAKE_PSEUDONYM_KEY and FOLDLAKE_PSEUDONYM_KEY_FILE have different values"),
    ],
    ids=["no file", "empty", "two values"],
)
def test_a_file_that_gives_no_value_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, value: str, message: str
) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
    monkeypatch.setenv("FOLDLAKE_PSEUDONYM_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("FOLDLAKE_PSEUDONYM_KEY", value)

    with pytest.raises(SettingsError, match=message):
        Settings.of()


@pytest.mark.parametrize(("old", "new"), list(RENAMED.items()))
def test_a_renamed_setting_is_read_by_its_old_name(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_name, new_name = f"{PREFIX}{old.upper()}", f"{PREFIX}{new.upper()}"
    (tmp_path / "value").write_text("0.5")
    expected = Settings.of(**{new: "0.5"})

    monkeypatch.setenv(old_name, "0.5")
    assert Settings.of() == expected
    assert list(setting_warnings()) == [
        f"{old_name} in the environment has a new name: rename it to {new_name}."
    ]

    monkeypatch.delenv(old_name)
    monkeypatch.setenv(f"{old_name}{FILE}", str(tmp_path / "value"))
    assert Settings.of() == expected
    assert list(setting_warnings()) == [
        f"{old_name}{FILE} in the environment has a new name: rename it to {new_name}{FILE}."
    ]


def test_the_new_name_wins_within_a_source_and_the_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("FOLDLAKE_LAKE_EVENTS=old\nFOLDLAKE_LAKE_EVENT_TABLES=new\n")

    assert Settings(_env_file=env_file).lake.event_tables == ("new",)
    assert list(variable_warnings(VARIABLES, env_file)) == [
        f"FOLDLAKE_LAKE_EVENTS in {env_file} is ignored, because FOLDLAKE_LAKE_EVENT_TABLES is set: remove it."
    ]

    monkeypatch.setenv("FOLDLAKE_LAKE_EVENTS", "environment")
    assert Settings(_env_file=env_file).lake.event_tables == ("environment",)


def test_a_variable_that_is_no_setting_is_reported_with_the_closest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("FOLDLAKE_QUERY_PORT_FILE=/ports\nFOLDLAKE_KAFKA_PORT=1\nOTHER=1\n")
    monkeypatch.setenv("FOLDLAKE_LAKE_EVENT", "off")
    monkeypatch.setenv("FOLDLAKE_XYZ", "1")
    monkeypatch.setenv("FOLDLAKE_STACK", "/home")

    assert list(variable_warnings(VARIABLES, tmp_path / ".env")) == [
        "FOLDLAKE_LAKE_EVENT in the environment is ignored: there is no such setting. Did you mean FOLDLAKE_LAKE_EVENT_TABLES?",
        "FOLDLAKE_XYZ in the environment is ignored: there is no such setting.",
        f"FOLDLAKE_QUERY_PORT_FILE in {tmp_path}/.env is ignored: there is no such setting. Did you mean FOLDLAKE_QUERY_PORTS_FILE?",
    ]


def test_no_renamed_setting_is_a_setting() -> None:
    assert RENAMED.keys().isdisjoint(VARIABLES)
    assert set(RENAMED.values()) <= VARIABLES.keys()
