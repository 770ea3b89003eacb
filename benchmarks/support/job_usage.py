"""How much processor time the jobs of a stack take after its start: Airflow's tasks, the job server, checks."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from include.settings import Settings
from stack.supervision.stray_processes import MARKER
from stack.supervision.supervisor import Supervisor, marker

POLL_S = 0.5
WINDOW_S = 10.0
# A part of the command line of the processes of a job, and the job's name.
JOBS = {
    "job_server": "job server",
    "quality_check": "check with DuckDB",
    "spark_jobs/": "job with a process of its own",
}
TASKS = "Airflow's tasks"
STANDBY = "standby driver"


@dataclass
class JobUsage:
    """What jobs have used up to each moment of a measurement: (seconds, CPU seconds by job)."""

    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    def total_s(self) -> dict[str, float]:
        """Return the processor time of each job, the largest first."""
        return dict(sorted(self.samples[-1][1].items(), key=lambda item: -item[1]))

    def busiest(self, job: str) -> float:
        """Return the largest share of a core that a job has used in WINDOW_S."""
        used = [(at_s, by_job.get(job, 0.0)) for at_s, by_job in self.samples]
        spans = (
            (end[1] - begin[1]) / (end[0] - begin[0])
            for index, begin in enumerate(used)
            for end in used[index + 1 :]
            if end[0] - begin[0] >= WINDOW_S
        )
        return max(spans, default=0.0)


@contextmanager
def jobs_measured(settings: Settings) -> Iterator[JobUsage]:
    """Measure jobs while the block runs; the last half second of a process that ends is missed."""
    usage, ended = JobUsage(), threading.Event()
    thread = threading.Thread(target=_measure, args=(settings, usage, ended), daemon=True)
    thread.start()
    yield usage
    ended.set()
    thread.join()


def _measure(settings: Settings, usage: JobUsage, ended: threading.Event) -> None:
    began_s = time.monotonic()
    # By process id and its start, so that another process with the same id counts as well.
    used_s: dict[tuple[int, float], tuple[str, float]] = {}
    before = {(process.pid, process.create_time()): _cpu_s(process) for _, process in _jobs(settings)}
    while not ended.wait(POLL_S):
        for job, process in _jobs(settings):
            try:
                identity = process.pid, process.create_time()
                used_s[identity] = job, _cpu_s(process) - before.get(identity, 0.0)
            except psutil.Error:
                continue
        by_job: dict[str, float] = {}
        for job, cpu_s in used_s.values():
            by_job[job] = by_job.get(job, 0.0) + cpu_s
        usage.samples.append((time.monotonic() - began_s, by_job))


def _jobs(settings: Settings) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the processes of jobs, each with the job's name."""
    state = Supervisor(settings).states().get("airflow-scheduler")
    scheduler = state.pid if state is not None else None
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) != marker(settings.home):
                continue
            words = " ".join(process.cmdline())
            job = next((name for part, name in JOBS.items() if part in words), None)
            if "spark_jobs/stream" in words or "spark_jobs.stream" in words:
                job = None
            if job is None and process.pid != scheduler and scheduler in {p.pid for p in process.parents()}:
                job = TASKS
        except psutil.Error:
            continue
        if job is not None:
            yield job, process


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
