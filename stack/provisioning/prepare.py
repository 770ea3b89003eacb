"""Prepares the two environments and the jars side by side, with a progress display. Runs in the bootstrap environment."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from stack.provisioning.installer import InstallationError, install, installed_packages, locked_packages
from stack.provisioning.jars import DownloadError, install_jars
from stack.provisioning.jars_lock import read_lock
from stack.provisioning.layout import Layout

LABELS = {
    "main": "Python packages: Airflow, query nodes, tools",
    "stream": "Python packages: stream driver",
    "jars": "Kafka, schema registry, Spark's connectors",
}
# How often the display counts the packages that have appeared.
COUNT_EVERY_S = 0.5
BYTES_PER_MB = 1_000_000


def main(root: str, base_python: str) -> int:
    """Prepare all parts that are not ready; returns the exit code."""
    layout = Layout(Path(root))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<46}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(len(LABELS)) as pool:
        jobs: dict[str, Future[None]] = {}
        for part, label in LABELS.items():
            if not layout.is_ready(part):
                task = progress.add_task(label, total=None, done="")
                make = _make_jars if part == "jars" else _make_environment(part, base_python)
                jobs[part] = pool.submit(_tell, console, label, progress, task, lambda t, make=make: make(layout, progress, t))
    failed = 0
    for part, job in jobs.items():
        try:
            job.result()
        except (InstallationError, DownloadError, OSError) as error:
            console.print(f"[red]{LABELS[part]}: failed.[/red]")
            console.print(str(error), markup=False, highlight=False)
            failed += 1
    return 1 if failed else 0


def _tell(
    console: Console, label: str, progress: Progress, task: TaskID, make: Callable[[TaskID], None]
) -> None:
    """Do one part; without a terminal there is no bar, so say in words when it ends."""
    make(task)
    progress.update(task, total=1, completed=1, done="ready")
    progress.stop_task(task)
    if not console.is_terminal:
        console.print(f"ready: {label}")


def _make_environment(environment: str, base_python: str) -> Callable[[Layout, Progress, TaskID], None]:
    def make(layout: Layout, progress: Progress, task: TaskID) -> None:
        total = len(locked_packages(environment))
        finished = threading.Event()

        def count() -> None:
            while not finished.wait(COUNT_EVERY_S):
                done = installed_packages(layout, environment)
                text = f"{done}/{total} packages" if done else "downloading"
                progress.update(task, total=total if done else None, completed=done, done=text)

        counter = threading.Thread(target=count, daemon=True)
        counter.start()
        try:
            install(layout, environment, base_python)
        finally:
            finished.set()
            counter.join()

    return make


def _make_jars(layout: Layout, progress: Progress, task: TaskID) -> None:
    total = sum(file.size_bytes for file in read_lock())
    arrived = 0
    lock = threading.Lock()

    def on_bytes(count: int) -> None:
        nonlocal arrived
        with lock:
            arrived += count
            text = f"{arrived // BYTES_PER_MB}/{total // BYTES_PER_MB} MB"
            progress.update(task, total=total, completed=arrived, done=text)

    install_jars(layout, on_bytes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
