"""Reads the command and environment of a process of the stack from a file, then executes it in place of this process.

supervisord's configuration cannot contain them: its quoting rules do not preserve every value.
"""

import json
import os
import sys
from pathlib import Path


def main(path: str) -> None:
    """Replace this process with the one described in the file."""
    described = json.loads(Path(path).read_text(encoding="utf-8"))
    os.execve(described["command"][0], described["command"], {**os.environ, **described["environment"]})  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1])
