"""`./foldlake retire`: retire a previous version before its grace time ends."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    version: Annotated[int, typer.Argument(min=1, help="The number of a previous version.")],
) -> None:
    """Retire a previous version now: stop its query, and remove its stores, topic and checkpoint. This cannot be undone.

    Example:
      ./foldlake retire balance 1
    """
    from include.observability.logs import configure_logs
    from include.rebuild.retirement import retire_version
    from include.settings import Settings

    settings = Settings()
    configure_logs(settings.log.format, "command line", text="%(message)s")
    retire_version(settings, read_model, version)
