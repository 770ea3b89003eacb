"""Reads the command and environment of a process of the stack from files, then executes it in place of this process.

supervisord's configuration cannot contain them: its quoting rules do not preserve every value.
"""

import json
import os
import sys
from pathlib import Path

# The variable by which a running process shows how it is defined.
DESCRIPTION = "STACK_DESCRIPTION"


def main(description: str, secrets: str = "") -> None:
    """Replace this process with the one described in a file; the variables that are secrets are in another file.

    A supervisord that an earlier release has started passes one file: it may restart a process before the next `up`.
    """
    described = json.loads(Path(description).read_text(encoding="utf-8"))
    environment = {**os.environ, **described["environment"], DESCRIPTION: description}
    if described.get("secrets"):
        environment |= json.loads(Path(secrets).read_text(encoding="utf-8"))["environments"][
            described["name"]
        ]
    if described.get("directory"):
        os.chdir(described["directory"])
    os.execve(described["command"][0], described["command"], environment)  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
