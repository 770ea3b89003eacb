"""The same stream job runs on a Spark standalone cluster with two workers; only a setting differs."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from include.process import die_with_parent
from include.settings import Settings
from stack.launchers.spark_submit import spark_home
from stack.tools import Tools
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource
from tests.support.temporary_stack import free_ports
from tests.support.unsupervised_driver import log_path, stream_driver
from tests.support.waiting import wait_until

LOOPBACK = "127.0.0.1"
CORES_PER_WORKER = 6


@contextmanager
def daemon(settings: Settings, class_name: str, *arguments: str, log: Path) -> Iterator[None]:
    """Run a Spark daemon from the stream driver's PySpark installation."""
    home = spark_home(Tools(settings.tools).stream_python)
    environment = {
        **os.environ,
        "FOLDLAKE_HOME": str(settings.home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": str(Tools(settings.tools).stream_python),
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{class_name}", *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A killed test run must leave no daemon.
            preexec_fn=die_with_parent,  # noqa: PLW1509 - only a system call
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def cluster(stream_stack: Settings, tmp_path: Path) -> Iterator[str]:
    """A master and two workers on loopback; yields the master's URL."""
    port, *ui_ports = free_ports(4)
    url = f"spark://{LOOPBACK}:{port}"
    log = tmp_path / "cluster.log"
    with ExitStack() as daemons:
        master = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui_ports[0]))
        daemons.enter_context(daemon(stream_stack, "master.Master", *master, log=log))
        wait_until(lambda: "New state: ALIVE" in log.read_text(), "the master is up")
        for number, ui_port in enumerate(ui_ports[1:]):
            worker = ("--host", LOOPBACK, "--webui-port", str(ui_port), "--cores", str(CORES_PER_WORKER))
            work = ("--memory", "1g", "--work-dir", str(tmp_path / f"worker-{number}"), url)
            daemons.enter_context(daemon(stream_stack, "worker.Worker", *worker, *work, log=log))
        wait_until(lambda: log.read_text().count("Successfully registered with master") == 2, "two workers")
        yield url


@pytest.mark.endurance
def test_cluster_continues_the_same_checkpoint_exactly(stream_stack: Settings, cluster: str) -> None:
    ledger = Ledger(stream_stack)
    source = EventSource(stream_stack, BALANCE.source_topic)
    source.append(ledger.random_events(7_000))
    on_cluster = stream_stack.changed(stream_master=cluster, stream_driver_host=LOOPBACK)

    with stream_driver(on_cluster):
        wait_until(lambda: ledger.is_folded(on_cluster), "caught up on the cluster")
        source.append(ledger.random_events(1_000))
        wait_until(lambda: ledger.is_folded(on_cluster), "folded in real time on the cluster")
        ledger.assert_exact(on_cluster)

    assert f"on {cluster}" in log_path(on_cluster).read_text()
