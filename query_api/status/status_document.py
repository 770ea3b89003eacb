"""The status of the whole: all sections, or some of them, as one JSON document."""

import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from query_api.status.section import Section, SectionSource

# How long a request waits for sections that nobody has asked for lately. What is not there by then follows with the next request.
WAIT_S = 3.0


class StatusDocument:
    """The sections of a node. Thread-safe."""

    def __init__(self, node: Mapping[str, Any], sources: Collection[SectionSource], folder: Path) -> None:
        self._node = dict(node)
        self._sections = {source.name: Section(source, folder) for source in sources}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sections, in their order."""
        return tuple(self._sections)

    def read(self, names: Collection[str]) -> dict[str, Any]:
        """Return the document with the sections of these names."""
        chosen = [section for name, section in self._sections.items() if name in names]
        for section in chosen:
            section.refresh()
        end_s = time.monotonic() + WAIT_S
        found = {section.name: section.current(max(0.0, end_s - time.monotonic())) for section in chosen}
        return {**self._node, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), "sections": found}
