"""A check runs in a program of its own; Spark's job runs only if that hands the check on, with the reason. Real processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from include.quality import check_engines
from include.quality.check import job_arguments
from include.quality.check_engines import run_check_with_engines
from include.quality.check_run import HANDED_TO_SPARK, NEEDS_SPARK, NO_VERDICT, PASSED, SparkReason, parse
from include.settings import CHECKOUT, CheckEngine, Settings, settings_environment
from tests.support.waiting import wait_until
from tests.unit.quality.test_report import REQUEST

REASON = SparkReason.of("a 'rule' is -- a\nfunction", 'the key "é\'7"')
CALLER = """
import sys
from include.quality import check_engines
from include.settings import Settings

check_engines.PROGRAM = ("-c", sys.argv[1])
check_engines.run_check_with_engines(Settings(), [], lambda given: 0, lambda line: print(line, flush=True))
"""
WAITS = """
import os, time
from include.process import die_with_parent, launcher_pid
die_with_parent(launcher_pid())
print(os.getpid(), flush=True)
time.sleep(600)
"""


class Runs:
    """Runs checks, and records the output of the program and the arguments of Spark's job, which passes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lines: list[str] = []
        self.spark: list[list[str]] = []

    def run(self) -> int:
        """Run a check and return its exit status."""
        return run_check_with_engines(
            self.settings, job_arguments(REQUEST), self.spark_job, self.lines.append
        )

    def spark_job(self, arguments: list[str]) -> int:
        """Record the arguments of Spark's job."""
        self.spark.append(arguments)
        return PASSED


def runs(home: Path, engine: CheckEngine = CheckEngine.AUTO) -> Runs:
    return Runs(Settings.of(home=home, check_engine=engine))


def program(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Replace the program by some code."""
    monkeypatch.setattr(check_engines, "PROGRAM", ("-c", code))


def test_spark_alone_checks_if_the_setting_says_so(tmp_path: Path) -> None:
    check = runs(tmp_path, CheckEngine.SPARK)

    assert check.run() == PASSED

    ((*arguments,),) = check.spark
    assert parse(arguments) == (REQUEST, SparkReason("FOLDLAKE_CHECK_ENGINE is spark"))
    assert HANDED_TO_SPARK not in "".join(check.lines)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", [0, 1, 69, 75])
def test_a_verdict_of_the_program_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    program(monkeypatch, f"import sys; print('ü 1'); sys.stderr.write('2\\n'); sys.exit({status})")
    check = runs(tmp_path)

    assert check.run() == status

    assert sorted(check.lines) == ["2", "ü 1"]
    assert check.spark == []


def test_a_reason_reaches_sparks_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_spark = (
        "from include.quality.check_run import *\n"
        f"def check(): raise SparkNeededError(SparkReason.of({REASON.text!r}, {REASON.disputed!r}))\n"
        "import sys; sys.exit(exit_status(check))"
    )
    program(monkeypatch, needs_spark)
    check = runs(tmp_path)

    assert check.run() == PASSED

    ((*arguments,),) = check.spark
    assert parse(arguments) == (REQUEST, REASON)
    assert REASON.text == "a 'rule' is -- a function"


@pytest.mark.parametrize("engine", [CheckEngine.AUTO, CheckEngine.DUCKDB])
def test_spark_checks_if_the_program_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: CheckEngine
) -> None:
    program(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    check = runs(tmp_path, engine)

    status = check.run()

    if engine is CheckEngine.AUTO:
        assert (status, len(check.spark)) == (PASSED, 1)
        assert "--engine-reason=the check with DuckDB ended with status -9" in check.spark[0]
    else:
        assert (status, check.spark) == (NO_VERDICT, [])


def test_another_program_runs_instead_of_the_check(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "import sys; print(sys.argv[1:])"

    status = run_check_with_engines(
        Settings.of(home=tmp_path), ["--version", "2"], lambda _: NO_VERDICT, lines.append, ("-c", code)
    )

    assert (status, lines) == (PASSED, ["['--version', '2']"])


def test_an_exception_of_the_caller_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, WAITS)
    pids: list[int] = []

    def time_out(line: str) -> None:
        pids.append(int(line))
        raise TimeoutError

    with pytest.raises(TimeoutError):
        run_check_with_engines(Settings.of(home=tmp_path), [], lambda _: PASSED, time_out)

    assert not psutil.pid_exists(pids[0])


def test_the_program_ends_with_a_killed_caller(tmp_path: Path) -> None:
    environment = os.environ | settings_environment(Settings.of(home=tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, WAITS],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())

        caller.send_signal(signal.SIGKILL)

        wait_until(lambda: not psutil.pid_exists(pid), "the program has ended", 30)


def test_the_status_for_spark_is_none_of_the_verdicts() -> None:
    assert NEEDS_SPARK not in check_engines.VERDICTS
