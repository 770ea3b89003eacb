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
    import logging

    from include.rebuild.retirement import retire_version
    from include.settings import Settings

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    retire_version(Settings(), read_model, version)
