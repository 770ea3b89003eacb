"""The descriptions of processes to which supervisord's configuration refers."""

from collections.abc import Iterable
from pathlib import Path

from include.settings import Settings
from stack.supervision.configuration import configuration_path, write_configuration
from stack.supervision.process import Process


def written_descriptions(settings: Settings, processes: Iterable[Process]) -> dict[str, Path]:
    """Write the configuration for these processes, and return name -> description."""
    processes = list(processes)
    descriptions = write_configuration(settings, processes)
    configuration = configuration_path(settings.home).read_text(encoding="utf-8")
    # Those of held servers are in a link.
    assert all(str(descriptions[one.name]) in configuration for one in processes if one.held is None)
    return descriptions
