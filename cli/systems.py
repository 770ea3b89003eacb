"""`./foldlake systems`: list the systems that Foldlake comes with, and enable or disable them."""

from typing import Annotated

import typer


def run(
    enable: Annotated[list[str] | None, typer.Option(help="A system to enable; may be repeated.")] = None,
    disable: Annotated[list[str] | None, typer.Option(help="A system to disable; may be repeated.")] = None,
) -> None:
    """List the systems that Foldlake comes with; enable or disable some in FOLDLAKE_HOME.

    A system is a folder of declarations in include/systems. A change takes effect at the next `./foldlake up`. What a system has
    written is kept when it is disabled. A system that FOLDLAKE_SYSTEMS names is always enabled.

    Examples:
      ./foldlake systems

      ./foldlake systems --enable pos
    """
    from rich.console import Console
    from rich.table import Table

    from include.declarations.enabled_systems import change_systems
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
