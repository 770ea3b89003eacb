"""Settings: parsed from the environment, converted back to it, and all listed in .env.example."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from include.settings import CHECKOUT, PREFIX, VARIABLES, Settings
from stack.settings_environment import settings_environment


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
