"""Prepares the two environments and the jars in parallel, with a progress display. Runs in the bootstrap environment."""

import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from stack.provisioning.installer import InstallationError, install, installed_packages, locked_packages
from stack.provisioning.jars import DownloadError, install_jars
from stack.provisioning.layout import Layout, read_lock

LABELS = {
    "main": "Python packages: Airflow, query nodes, tools",
    "stream": "Python packages: stream driver",
    "jars": "Kafka, schema registry, Spark's connectors",
}
# The interval at which the display counts the installed packages.
COUNT_EVERY_S = 0.5
BYTES_PER_MB = 1_000_000


def main(root: str, base_python: str) -> int:
    """Prepare all parts that are not ready, and return the exit code."""
    layout = Layout(Path(root))
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<46}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    jobs: dict[str, Future[None]] = {}
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(len(LABELS)) as pool:
        for part, label in LABELS.items():
            if not layout.is_ready(part):
                line = _Line(progress, progress.add_task(label, total=None, done=""), label)
                jobs[part] = pool.submit(_make, part, layout, base_python, line)
    failed = 0
    for part, job in jobs.items():
        try:
            job.result()
        except (InstallationError, DownloadError, OSError, subprocess.SubprocessError) as error:
            console.print(f"[red]{LABELS[part]}: failed.[/red]")
            console.print(str(error), markup=False, highlight=False)
            failed += 1
    return 1 if failed else 0


@dataclass(frozen=True)
class _Line:
    """One line of the display."""

    progress: Progress
    task: TaskID
    label: str

    def show(self, done: float, total: float | None, text: str) -> None:
        self.progress.update(self.task, total=total, completed=done, done=text)

    def end(self) -> None:
        self.show(1, 1, "ready")
        self.progress.stop_task(self.task)
        console = self.progress.console
        if not console.is_terminal:
            # Without a terminal no bar is drawn.
            console.print(f"ready: {self.label}")


def _make(part: str, layout: Layout, base_python: str, line: _Line) -> None:
    if part == "jars":
        _make_jars(layout, line)
    else:
        _make_environment(part, layout, base_python, line)
    line.end()


def _make_environment(environment: str, layout: Layout, base_python: str, line: _Line) -> None:
    total = len(locked_packages(environment))
    finished = threading.Event()

    def count() -> None:
        while not finished.wait(COUNT_EVERY_S):
            done = installed_packages(layout, environment)
            # The packages appear all at once, after all of them are downloaded and built.
            line.show(done, total if done else None, f"{done}/{total} packages" if done else "downloading")

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    try:
        install(layout, environment, base_python)
    finally:
        finished.set()
        counter.join()


def _make_jars(layout: Layout, line: _Line) -> None:
    total = sum(file.size_bytes for file in read_lock())
    arrived = 0
    lock = threading.Lock()

    def on_bytes(count: int) -> None:
        nonlocal arrived
        with lock:
            arrived += count
            line.show(arrived, total, f"{arrived // BYTES_PER_MB}/{total // BYTES_PER_MB} MB")

    install_jars(layout, on_bytes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
