"""The stream supervisor, which a new release replaces, the change of the driver's configuration, and the graceful stop of the stream."""

import time
from contextlib import suppress
from pathlib import Path

from include.airflow.client import AirflowApi, AirflowUnavailableError, RunState, airflow_api
from include.airflow.names import STREAM_DAG
from include.errors import FoldlakeError, KafkaUnavailableError
from include.kafka.topics import dead_letter_topic
from include.settings import CHECKOUT, AirflowSettings, Settings
from include.stream import driver_configuration, driver_launch, launch_failures
from include.stream.driver_configuration import DriverConfiguration, Handover, HandoverReport
from include.stream.query_reports import FOLDING, Phase, read_queries
from include.waiting import retry, wait_for
from stack.launchers import stream_driver, stream_supervisor
from stack.launchers.driver_handover import READY_TIMEOUT_S, TRANSFER_TIMEOUT_S
from stack.readiness import Listener, Progress
from stack.supervision.configuration import declarations_digest
from stack.supervision.process import Held, Process
from stack.tools import Tools

STREAM_SUPERVISOR = "stream-supervisor"
START_ORDER = 30
# What the stream supervisor and the driver run.
CODE = (
    "include",
    "spark_jobs",
    "stack/launchers",
    "stack/components/stream_process.py",
    "stack/provisioning/layout.py",
    "stack/tools.py",
    "stack/jars.lock",
    "requirements.txt",
    "requirements-stream.txt",
)
# After Kafka and the registry, before the query nodes: they keep their configuration if the new driver fails.
UPDATE_ORDER = 10
# The time limit for the driver's task to end.
RUN_END_TIMEOUT_S = 15.0
POLL_INTERVAL_S = 0.2
# Airflow's API server does not answer for several seconds while it serves a task's first request.
FIRST_ANSWER_S = 60.0

# Longer than the stream supervisor waits for a new driver, and for the present one to pass its folds.
HANDOVER_TIMEOUT_S = READY_TIMEOUT_S + TRANSFER_TIMEOUT_S + 60.0
# A driver that has taken over folds within seconds; one that had to be launched without a standby, in half a minute.
FOLD_TIMEOUT_S = 180.0


class HandoverError(FoldlakeError):
    """The stream driver could not be replaced by one with the changed settings or declarations."""

    @classmethod
    def rejected(cls, error: str, output: str) -> "HandoverError":
        """Return the error for a new driver that has failed."""
        end = f" The end of its output:\n{output.rstrip()}" if output else ""
        return cls(
            f"A stream driver with the changed settings or declarations has failed: {error.removesuffix('.')}. The one with those before goes on. "
            f"Hint: correct the cause, then run `./foldlake up` again.{end}"
        )


def prepare(settings: Settings) -> None:
    """Create the folder of the driver's files, and write the driver's configuration if no stream supervisor follows it yet."""
    stream_driver.directory(settings.home).mkdir(parents=True, exist_ok=True)
    if not stream_supervisor.is_running(settings.home):
        _request(settings)


def update(settings: Settings, listener: Listener) -> None:
    """Have the stream supervisor replace the driver if its settings or declarations have changed, and wait until the new one folds.

    Raises HandoverError.
    """
    if not stream_supervisor.is_running(settings.home):
        return
    wanted = _request(settings)
    began_s = time.monotonic()

    def show(_waited_s: float) -> None:
        listener(Progress("stream-driver", "getting ready", 0))

    report = wait_for(
        lambda: _outcome(settings.home, wanted.request),
        timeout_s=HANDOVER_TIMEOUT_S,
        poll_s=POLL_INTERVAL_S,
        while_waiting=show,
        log_interval_s=POLL_INTERVAL_S,
    )
    if report is None:
        raise HandoverError(
            "The stream supervisor has not replaced the stream driver in time. Hint: `./foldlake logs stream-supervisor` shows why."
        )
    if report.is_new:
        listener(Progress("stream-driver", "starting", 0))
        _wait_until_folding(settings, wanted.request)
        listener(Progress("stream-driver", "ready", time.monotonic() - began_s))


def _request(settings: Settings) -> DriverConfiguration:
    return driver_configuration.request(settings, declarations_digest(settings.declaration_folders))


def _outcome(home: Path, request: str) -> HandoverReport | None:
    """Return the report of a change when it is done; None while it is under way. Raises HandoverError when it has failed."""
    report = driver_configuration.read_report(home)
    if report is not None and report.request == request:
        if report.state == Handover.FAILED:
            raise HandoverError.rejected(report.error, report.output)
        return report if report.state == Handover.DONE else None
    return None


def _wait_until_folding(settings: Settings, request: str) -> None:
    """Wait until the queries of the new driver have started; raises HandoverError when it fails meanwhile, or does not fold in time."""

    def is_folding() -> bool:
        _outcome(settings.home, request)
        return _is_folding(settings)

    if not wait_for(is_folding, timeout_s=FOLD_TIMEOUT_S, poll_s=POLL_INTERVAL_S):
        raise HandoverError(
            f"The new stream driver does not fold after {FOLD_TIMEOUT_S:.0f} s. Hint: `./foldlake status` shows its queries."
        )


def _is_folding(settings: Settings) -> bool:
    """Whether all queries of the driver have started, and one folds."""
    driver = stream_driver.running(settings.home)
    python = None if driver is None else driver.python()
    if python is None:
        return False
    try:
        queries = read_queries(settings.kafka_connection)
    except KafkaUnavailableError:
        return False
    phases = {
        query.phase
        for query in queries
        if query.is_running and query.driver_pid == python.pid
        # Dead letters wait until everything is folded, which may take long.
        if query.query != dead_letter_topic(query.source_topic)
    }
    return bool(phases & FOLDING) and Phase.STARTING not in phases


def processes(settings: Settings) -> list[Process]:
    """Return the stream supervisor. It starts beside Airflow, whose task tells it which driver is wanted.

    One with new code gets a driver ready beside the present one, and takes over when that has passed its folds.
    """

    def request_driver(description: Path) -> None:
        digest = declarations_digest(settings.declaration_folders)
        driver_configuration.request_for(settings, digest, str(description))

    return [
        Process(
            name=STREAM_SUPERVISOR,
            command=(str(Tools(settings.tools).main_python), "-m", "stack.components.stream_process"),
            start_order=START_ORDER,
            is_ready=lambda: stream_supervisor.is_running(settings.home),
            # The settings are in the driver's configuration: a change does not restart the stream supervisor, with which the driver ends.
            environment={
                "PYTHONPATH": str(CHECKOUT),
                "PYTHONUNBUFFERED": "1",
                "FOLDLAKE_HOME": str(settings.home),
            },
            # Longer than the driver's own time limit.
            stop_timeout_s=int(stream_supervisor.STOP_TIMEOUT_S) + 10,
            ready_timeout_s=int(READY_TIMEOUT_S) + 60,
            is_serving=lambda: _is_folding(settings),
            reads_settings=False,
            code=CODE,
            held=Held(before=request_driver, takeover_s=int(TRANSFER_TIMEOUT_S)),
        )
    ]


def missing_supervisor(settings: Settings) -> str:
    """Return what to do about a stream supervisor that `./foldlake up` does not start; empty if it starts one, or if one runs in this home."""
    if not settings.airflow.url or stream_supervisor.is_running(settings.home):
        return ""
    return (
        "FOLDLAKE_AIRFLOW_URL is set: `./foldlake up` starts neither Airflow nor the stream supervisor, without which nothing is folded. "
        "Run the stream supervisor where that Airflow's tasks run, with their FOLDLAKE_HOME: "
        f"{Tools(settings.tools).main_python} -m stack.foreground {STREAM_SUPERVISOR}"
    )


def after_start(settings: Settings) -> None:
    """Unpause the stream's DAG, which `before_stop` paused; does nothing at the first start. A driver that failed is launched at once.

    Retries for up to a minute: an API server that has just started may be busy with its first task and not answer.
    """
    launch_failures.request_launch(settings.home)

    def unpause() -> None:
        client = airflow_api(settings.home, settings.airflow)
        if client.dag_exists(STREAM_DAG):
            client.set_paused(STREAM_DAG, paused=False)

    retry(
        unpause,
        retryable=lambda error: isinstance(error, AirflowUnavailableError) and error.status is None,
        timeout_s=FIRST_ANSWER_S,
        poll_s=POLL_INTERVAL_S,
    )


def before_stop(settings: Settings) -> None:
    """Stop the stream gracefully: pause its DAG, stop the driver, and end its run.

    If Airflow does not answer, its steps are skipped; the driver is stopped in any case.
    """
    client = _paused(settings.home, settings.airflow)
    driver_launch.withdraw(settings.home)
    graceful = _stop_driver(settings.home)
    if client is not None:
        with suppress(AirflowUnavailableError):
            _end_runs(settings.home, client, "success" if graceful else "failed")


def _stop_driver(home: Path) -> bool:
    """Wait until the stream supervisor has stopped the driver; without a stream supervisor, stop it here. Returns whether it ended in time."""
    if stream_supervisor.is_running(home):
        ended = wait_for(
            lambda: not driver_launch.is_under_way(home),
            timeout_s=stream_supervisor.STOP_TIMEOUT_S + 1.0,
            poll_s=POLL_INTERVAL_S,
        )
        if ended:
            return True
    return stream_driver.stop(home, timeout_s=stream_supervisor.STOP_TIMEOUT_S)


def _paused(home: Path, airflow: AirflowSettings) -> AirflowApi | None:
    """Pause the stream's DAG; return a client of this Airflow, or None if it does not answer."""
    try:
        client = airflow_api(home, airflow)
        client.set_paused(STREAM_DAG, paused=True)
    except (AirflowUnavailableError, OSError, ValueError):
        return None
    return client


def _end_runs(home: Path, client: AirflowApi, state: RunState) -> None:
    """Wait until the driver's task has ended, then end its run, which Airflow would do only a minute later."""
    runs = client.active_runs(STREAM_DAG)
    if launch_failures.is_waiting(home):
        # There is no driver to stop: the task waits until it may launch one, and ends with its run.
        for run_id in runs:
            client.mark_run(STREAM_DAG, run_id, "failed")

    def tasks_ended() -> bool:
        if not any(client.running_tasks(STREAM_DAG, run_id) for run_id in runs):
            return True
        # A task that was just starting may have wanted its driver only after the first stop.
        driver_launch.withdraw(home)
        return False

    wait_for(tasks_ended, timeout_s=RUN_END_TIMEOUT_S, poll_s=POLL_INTERVAL_S)
    for run_id in runs:
        client.mark_run(STREAM_DAG, run_id, state)
    _stop_driver(home)
