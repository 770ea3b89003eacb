"""Writes what the checkpoint of a fold's query contains, for tests of the lake without a stream driver."""

import json
from collections.abc import Mapping
from pathlib import Path

from include.declarations.read_model import ReadModel
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path


def write_stream_checkpoint(
    settings: Settings, model: ReadModel, batch: int, offsets: Mapping[str, int]
) -> None:
    """Write the files that the checkpoint of the first version's query contains after a batch."""
    checkpoint = Path(checkpoint_path(settings.checkpoints, model.name, 1))
    source = json.dumps({model.source_topic: offsets})
    for folder, text in (("offsets", f"v1\n{{}}\n{source}"), ("commits", "v1\n{}")):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        (checkpoint / folder / str(batch)).write_text(text)
