"""Becomes one process of the stack: reads its command and environment from a file, then executes it.

The quoting rules of supervisord's own configuration do not preserve every value.
"""

import json
import os
import sys
from pathlib import Path


def main(path: str) -> None:
    """Replace this process by the one that the file describes."""
    described = json.loads(Path(path).read_text(encoding="utf-8"))
    os.execve(described["command"][0], described["command"], {**os.environ, **described["environment"]})  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1])
