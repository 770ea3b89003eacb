"""The Python process of a Spark application that is started before its JVM: runs the application, which waits for the JVM when it needs a session.

`python -m spark_jobs.runtime.early_start PARENT FOLDER MODULE [ARGUMENT...]`: see stack/launchers/early_python.py.
"""

import importlib
import os
import sys
import time
from pathlib import Path

from include.files import write_atomically
from include.process import die_with_parent

POLL_INTERVAL_S = 0.005
# Variable with the file in which the address of the JVM's gateway appears.
GATEWAY_FILE = "EARLY_GATEWAY"


def main() -> None:
    """Run the application's `main`, and leave its exit status in the folder."""
    parent_pid, folder, module = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    die_with_parent(parent_pid)
    sys.argv[:] = [module, *sys.argv[4:]]
    status: object = 1
    try:
        application = importlib.import_module(module)
        os.environ[GATEWAY_FILE] = str(folder / "gateway")
        status = application.main()
    except SystemExit as exit_:
        status = exit_.code
        raise
    finally:
        write_atomically(folder / "status", f"{_number(status)}\n")
    sys.exit(_number(status))


def await_gateway() -> None:
    """Wait for the address of the JVM's gateway, and set the variables that PySpark reads; only in a process that was started before its JVM."""
    path = os.environ.pop(GATEWAY_FILE, None)
    if path is None:
        return
    file = Path(path)
    while not file.exists():
        time.sleep(POLL_INTERVAL_S)
    port, secret = file.read_text(encoding="utf-8").split()
    file.unlink()
    os.environ.update({"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret})


def _number(status: object) -> int:
    """Return the exit status that Python gives a process for an argument of `sys.exit`."""
    if status is None:
        return 0
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    main()
