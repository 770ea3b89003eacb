"""`./foldlake retire`: retire a previous version before its grace time is over."""

from typing import Annotated

import typer


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    version: Annotated[int, typer.Argument(min=1, help="A previous version of it.")],
) -> None:
    """Retire a previous version now: its query ends, its stores, topic and checkpoint go. There is no way back to it.

    Example:
      ./foldlake retire balance 1
    """
    import logging

    from include.rebuild.retirement import retire_version
    from include.settings import Settings

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    retire_version(Settings(), read_model, version)
