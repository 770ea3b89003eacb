"""The Python process of a Spark application starts before its JVM, gets the gateway's address, and its exit status becomes Spark's."""

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from include.settings import CHECKOUT
from stack.launchers import early_python
from tests.support.waiting import wait_until

# Becomes another program by `exec`, as the launcher does: here a shell that starts what Spark would start, and says how that ended.
LAUNCHER = """
import os, sys
from pathlib import Path
from stack.launchers import early_python
early_python.APPLICATIONS = Path(sys.argv[1]) / "spark_jobs"
arguments = ["--master", "local[1]", str(early_python.APPLICATIONS / "job.py"), "an argument"]
environment = early_python.start_python(Path(sys.executable), arguments, Path(sys.argv[1]), os.environ)
environment |= {"PYSPARK_GATEWAY_PORT": "4711", "PYSPARK_GATEWAY_SECRET": "s3cret"}
os.execve("/bin/sh", ["/bin/sh", "-c", sys.argv[2]], environment)
"""
SPARK = '"$PYSPARK_DRIVER_PYTHON" job.py; echo "ended with $?"'


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Launch":
    # The application's package, which has the same name as the real one, and contains its start.
    package = tmp_path / "spark_jobs"
    (package / "runtime").mkdir(parents=True)
    for part in ("__init__.py", "runtime/__init__.py", "runtime/early_start.py"):
        (package / part).write_bytes((CHECKOUT / "spark_jobs" / part).read_bytes())
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{CHECKOUT}")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    return Launch(tmp_path)


class Launch:
    """Runs LAUNCHER with an application."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, main: str, script: str = SPARK) -> subprocess.Popen[str]:
        """Start it with this body of the application's `main`."""
        job = f"import os, signal, sys, time\ndef main():\n{textwrap.indent(main, '    ')}\n"
        (self.folder / "spark_jobs" / "job.py").write_text(job)
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(self.folder), script], stdout=subprocess.PIPE, text=True
        )


def output(process: subprocess.Popen[str]) -> list[str]:
    """Return the lines of the output, once the process has ended."""
    return process.communicate(timeout=30)[0].splitlines()


def test_application_gets_its_arguments_and_the_gateway(launch: Launch) -> None:
    lines = output(
        launch(
            "from spark_jobs.runtime.early_start import await_gateway\nawait_gateway()\n"
            'print(sys.argv[1:], *(os.environ["PYSPARK_GATEWAY_" + n] for n in ("PORT", "SECRET")), flush=True)'
        )
    )

    assert lines == ["['an argument'] 4711 s3cret", "ended with 0"]
    assert not (launch.folder / "early-python" / "gateway").exists()


@pytest.mark.parametrize(
    ("main", "status"),
    [
        ("return 3", 3),
        ("sys.exit(4)", 4),
        ("sys.exit('words')", 1),
        ("raise ValueError", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_exit_status_of_the_application_is_that_of_spark(launch: Launch, main: str, status: int) -> None:
    assert output(launch(main))[-1] == f"ended with {status}"


def test_python_ends_with_the_jvm(launch: Launch) -> None:
    main = "print(os.getpid(), flush=True)\ntime.sleep(600)"
    process = launch(main, script='exec "$PYSPARK_DRIVER_PYTHON" job.py')
    assert process.stdout is not None
    pid = int(process.stdout.readline())

    process.kill()
    process.communicate(timeout=30)

    wait_until(lambda: not psutil.pid_exists(pid), "Python has ended")


def test_without_flock_spark_starts_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    found = early_python.start_python(
        Path(sys.executable), [str(CHECKOUT / "spark_jobs" / "stream.py")], tmp_path, {"A": "b"}
    )

    assert found == {"A": "b"}
    assert not (tmp_path / "early-python").exists()
