"""The descriptions of processes to which supervisord's configuration refers."""

import re
from collections.abc import Iterable
from pathlib import Path

from include.settings import Settings
from stack.supervision.configuration import configuration_path, write_configuration
from stack.supervision.process import Process


def written_descriptions(settings: Settings, processes: Iterable[Process]) -> dict[str, Path]:
    """Write the configuration for these processes, and return name -> description."""
    write_configuration(settings, processes)
    text = configuration_path(settings.home).read_text(encoding="utf-8")
    found = re.findall(r'^\[program:(.+)\]\ncommand=.* "([^"]+)" "[^"]+"$', text, re.MULTILINE)
    return {name: Path(path) for name, path in found}
