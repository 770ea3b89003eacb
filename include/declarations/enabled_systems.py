"""Enables and disables systems in a home; the processes of the stack read the change at the next `./foldlake up`."""

from collections.abc import Iterable
from pathlib import Path

from include.errors import SettingsError
from include.files import PRIVATE_FILE, write_atomically
from include.settings.systems import FILE, require_systems, systems_of_home


def change_systems(home: Path, *, enable: Iterable[str] = (), disable: Iterable[str] = ()) -> tuple[str, ...]:
    """Enable systems in a home and disable others there; return those that are enabled then.

    What a system has written is kept when it is disabled. Raises SettingsError for a system that does not exist.
    """
    try:
        added, removed = require_systems(enable), require_systems(disable)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    before = systems_of_home(home)
    enabled = tuple(name for name in dict.fromkeys((*before, *added)) if name not in removed)
    if enabled != before:
        write_atomically(home / FILE, "".join(f"{name}\n" for name in enabled), PRIVATE_FILE)
    return enabled
