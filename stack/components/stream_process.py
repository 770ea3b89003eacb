"""The stream supervisor's process: `python -m stack.components.stream_process`.

The embedded stack starts one with new code beside the present one, which it replaces. See decision 72.
"""

import logging
import os
import signal
import sys

from include.airflow.client import AirflowApi
from include.errors import FoldlakeError
from include.files import FileLock, FileLockedError
from include.process import DESCRIPTION, is_held, report_ready
from include.settings import Settings
from include.stream import driver_configuration
from stack.launchers.stream_supervisor import DRIVER_COMMAND, StreamSupervisor, lock_path
from stack.launchers.supervisor_replacement import NextSupervisor

LOG = logging.getLogger("foldlake.stream-supervisor")
# A stream supervisor that is killed releases its lock at once.
LOCK_WAIT_S = 10.0


def main() -> int:
    """Keep the driver of this home until SIGTERM, or until another stream supervisor has replaced this one; return the exit status."""
    # The requested configuration has the settings of `.env`.
    settings = Settings.of()
    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    reports = is_held()
    lock = FileLock(lock_path(settings.home))
    try:
        _keep(settings, lock, os.environ.get(DESCRIPTION, ""), reports=reports)
    except FileLockedError as locked:
        LOG.error(  # noqa: TRY400 - operators need the message, not a traceback
            "Process %s keeps the stream driver of this home already: %s is locked."
            " Hint: run one stream supervisor for each FOLDLAKE_HOME.",
            locked.holder,
            locked.path,
        )
        return 1
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - as above
        return 1
    return 0


def _keep(settings: Settings, lock: FileLock, own: str, *, reports: bool) -> None:
    """Get the lock, with a driver that is ready if this one replaces another one, and keep the driver. own: the file that defines this process.
    reports: whether a holder waits until this one is ready.

    Raises FileLockedError, ReplacementError.
    """
    wanted = driver_configuration.read_next(settings.home, own)
    new = None if wanted is None else NextSupervisor(settings.home, lock, wanted, DRIVER_COMMAND)
    if new is None:
        lock.acquire(wait_s=LOCK_WAIT_S)
    else:
        signal.signal(signal.SIGTERM, new.request_stop)
        new.wait()
        driver_configuration.adopt_next(settings.home, own)
    if reports:
        report_ready()
    supervisor = StreamSupervisor(settings, DRIVER_COMMAND, _is_airflow_away)
    if new is not None and new.driver is not None and wanted is not None:
        supervisor.continue_with(new.driver, wanted)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.request_stop)
    if new is None or not new.is_stopping:
        supervisor.run()


def _is_airflow_away(current: Settings) -> bool:
    return not {"scheduler", "triggerer"} <= AirflowApi(current.airflow.base_url).health()


if __name__ == "__main__":
    sys.exit(main())
