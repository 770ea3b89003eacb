"""Becomes one process of the stack: reads its command and environment from a file, then executes it.

The supervisor's own configuration has quoting rules that not every value survives.
"""

import json
import os
import sys
from pathlib import Path


def main(path: str) -> None:
    """Replace this process by what the file describes."""
    described = json.loads(Path(path).read_text(encoding="utf-8"))
    os.execve(described["command"][0], described["command"], {**os.environ, **described["environment"]})  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1])
