"""The API keys that a node knows, as one file: its materializer writes it, its HTTP workers read it.

A revocation needs no space on the disk, and keys stay valid while Kafka is down, also over a restart.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from include.access.api_key import ApiKey, keys_to_json, parse_keys
from include.files import PRIVATE_FILE
from query_api import shared_file
from query_api.shared_file import FileWatch

FILE_NAME = "api-keys"


def write_key_file(directory: Path, keys: Iterable[ApiKey]) -> None:
    """Replace the file; raises OSError when the disk is full and the file cannot be overwritten either."""
    shared_file.write(directory / FILE_NAME, keys_to_json(keys), PRIVATE_FILE)


def read_key_file(directory: Path) -> dict[str, ApiKey] | None:
    """Return the keys by id; None when there is no readable file."""
    text = shared_file.read(directory / FILE_NAME)
    try:
        return None if text is None else parse_keys(text)
    except ValueError:
        return None


def watch_keys(directory: Path) -> FileWatch[Mapping[str, ApiKey]]:
    """Return a watch of the newest keys, by id."""
    return FileWatch(directory / FILE_NAME, partial(read_key_file, directory))
