"""Runs the command line: `python -m cli`."""

import sys

from cli.app import app
from include.errors import FoldlakeError
from include.files import private_umask


def main() -> None:
    """Run one command; Foldlake's own errors are printed without a traceback."""
    try:
        with private_umask():
            app(prog_name="./foldlake")
    except FoldlakeError as error:
        print(f"foldlake: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
