"""The file in memory through which a node's materializer shows the last hour to the HTTP workers."""

import json
import shutil
from pathlib import Path
from typing import Any

from include.files import write_atomically
from query_api.history.samples import History
from query_api.memory_folder import memory_folder, memory_folders

FOLDER = "history"
FILE = "samples.json"


def write(store_dir: Path, history: History) -> None:
    """Replace the file; raises OSError."""
    write_atomically(memory_folder(store_dir, FOLDER) / FILE, json.dumps(history.as_json()))


def read_json(store_dir: Path) -> dict[str, Any]:
    """Return the samples as `History.as_json` does; empty before the first ones."""
    for folder in memory_folders(store_dir, FOLDER):
        try:
            found = json.loads((folder / FILE).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def read(store_dir: Path) -> History:
    """Return the samples that an earlier process has left; none if another release wrote them."""
    try:
        return History.from_json(read_json(store_dir))
    except (KeyError, TypeError, ValueError, AttributeError):
        return History()


def remove(store_dir: Path) -> None:
    """Remove the file and its folder."""
    for folder in memory_folders(store_dir, FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
