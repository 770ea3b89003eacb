"""Where the state of a key is explained: the page on a query node, and the command."""

import shlex
from urllib.parse import urlencode


def explain_path(read_model: str, key: str) -> str:
    """Return the path of the page on a query node."""
    return f"/explain?{urlencode({'readModel': read_model, 'key': key})}"


def explain_command(read_model: str, key: str, *, version: int) -> str:
    """Return the command, for a shell."""
    return f"./foldlake explain {shlex.quote(read_model)} {shlex.quote(key)} --version {version}"
