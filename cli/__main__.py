"""Runs the command line: `python -m cli`."""

import sys

from cli.app import app
from include.errors import FoldlakeError


def main() -> None:
    """Run one command; Foldlake's own errors are printed without a traceback."""
    try:
        app(prog_name="./foldlake")
    except FoldlakeError as error:
        print(f"foldlake: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
