"""`./foldlake systems`: list the systems that Foldlake comes with, and enable or disable them."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def run(
    enable: Annotated[list[str] | None, typer.Option(help="A system to enable; may be repeated.")] = None,
    disable: Annotated[list[str] | None, typer.Option(help="A system to disable; may be repeated.")] = None,
) -> None:
    """List the systems that Foldlake comes with; enable or disable some in FOLDLAKE_HOME.

    A system is a folder of declarations in demo/systems. A change takes effect at the next `./foldlake up`. What a system has
    written is kept when it is disabled. A system that FOLDLAKE_SYSTEMS names is always enabled.

    Examples:
      ./foldlake systems

      ./foldlake systems --enable pos
    """
    from rich.console import Console
    from rich.table import Table

    from include.settings import Settings
    from include.settings.systems import known_systems, system_folder

    settings = Settings()
    if enable or disable:
        change_systems(settings.home, enable=enable or (), disable=disable or ())
    table = Table("system", "enabled", "declarations", header_style="bold")
    for name in known_systems():
        table.add_row(name, "yes" if name in settings.enabled_systems else "no", str(system_folder(name)))
    console = Console()
    console.print(table)
    if enable or disable:
        console.print("Run `./foldlake up` for the change to take effect.")


def change_systems(
    home: "Path", *, enable: "Iterable[str]" = (), disable: "Iterable[str]" = ()
) -> tuple[str, ...]:
    """Enable systems in a home and disable others there; return those that are enabled then.

    What a system has written is kept when it is disabled. Raises SettingsError for a system that does not exist.
    """
    from include.errors import SettingsError
    from include.files import PRIVATE_FILE, write_atomically
    from include.settings.systems import FILE, require_systems, systems_of_home

    try:
        added, removed = require_systems(enable), require_systems(disable)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    before = systems_of_home(home)
    enabled = tuple(name for name in dict.fromkeys((*before, *added)) if name not in removed)
    if enabled != before:
        write_atomically(home / FILE, "".join(f"{name}\n" for name in enabled), PRIVATE_FILE)
    return enabled
