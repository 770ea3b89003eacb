"""docker-compose.yaml as Docker reads it, and its services as processes of this machine."""

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml

from include.settings import CHECKOUT, PREFIX

VARIABLE = re.compile(r"\$\{(\w+):([-+])([^${}]*)\}")


def interpolated(text: str, values: Mapping[str, str] | None = None) -> str:
    """Replace `${NAME:-default}` and `${NAME:+value}`, as Docker does with these values in `.env`."""
    known = values or {}

    def value(found: re.Match[str]) -> str:
        given = known.get(found[1], "")
        return given or found[3] if found[2] == "-" else found[3] if given else ""

    while (replaced := VARIABLE.sub(value, text)) != text:
        text = replaced
    return text.replace("$$", "$")


def compose_services(values: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the services by name, with these values in `.env`."""
    text = (CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8")
    services: dict[str, dict[str, Any]] = yaml.safe_load(interpolated(text, values))["services"]
    return services


def process_environment(
    service: Mapping[str, Any], values: Mapping[str, str], replaced: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a service's process on this machine.

    values: those of `.env`, which the file of the service overrides. replaced: texts of the containers, such as paths and hosts, and what
    they are on this machine.
    """
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    # A variable without a value is that of the shell, which has none.
    given = {name: value for name, value in service["environment"].items() if value is not None}
    own = {name: str(value) for name, value in {**values, **given}.items()}
    return others | {name: on_this_machine(value, replaced) for name, value in own.items()}


def on_this_machine(text: str, replaced: Mapping[str, str]) -> str:
    """Return a text of a container with what its parts are on this machine."""
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text
