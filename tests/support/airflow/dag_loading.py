"""Loads the DAGs as Airflow does, and describes them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from include.settings import CHECKOUT

Loaded = dict[str, Any]


@contextmanager
def dag_loader(folder: Path, environment: dict[str, str]) -> Iterator[Callable[[dict[str, str]], Loaded]]:
    """Yield a function that returns the DAGs of an environment, their tasks, and the errors (tests/support/airflow/dag_server.py).

    folder: for its files. environment: one with which Airflow can be imported.
    """
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.support.airflow.dag_server"],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        requests, answers = server.stdin, server.stderr

        def load(environment: dict[str, str]) -> Loaded:
            path = folder / "dags.json"
            path.unlink(missing_ok=True)
            requests.write(f"{json.dumps((str(path), environment))}\n")
            requests.flush()
            output = []
            for line in answers:
                if line == "0\n":
                    found: Loaded = json.loads(path.read_text(encoding="utf-8"))
                    return found
                output.append(line)
                if line.strip().lstrip("-").isdigit():
                    break
            raise AssertionError("".join(output))

        yield load
