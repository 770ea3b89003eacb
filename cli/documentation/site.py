"""Builds and serves the site, with MkDocs in an environment of its own."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from include.errors import FoldlakeError
from include.settings import CHECKOUT
from stack.provisioning.launcher import PreparationError, make_docs_ready
from stack.provisioning.layout import Layout


class SiteError(FoldlakeError):
    """The site cannot be built."""


def build(tools: Path, output: Path) -> None:
    """Write the site into a folder, which it replaces.

    Raises:
        SiteError: a link, an anchor or the navigation is wrong; MkDocs has printed which.
    """
    _run(tools, ["build", "--site-dir", output])


def serve(tools: Path, port: int) -> None:
    """Serve the site on the loopback address until the process is interrupted, and build it again after each change.

    Raises:
        SiteError: the site cannot be built.
    """
    _run(tools, ["serve", "--dev-addr", f"127.0.0.1:{port}"])


def _run(tools: Path, arguments: Sequence[str | Path]) -> None:
    layout = Layout(tools)
    if not layout.is_ready("docs"):
        try:
            make_docs_ready(layout)
        except PreparationError as error:
            raise SiteError(str(error)) from error
    command = [layout.python("docs"), "-m", "mkdocs", *arguments]
    # The theme advertises its successor at each start.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode != 0:
        raise SiteError("MkDocs has failed. Correct what it names above, then run the command again.")
