"""The embedded Airflow: its configuration, its database and its four processes."""

import hashlib
import json
import os
import secrets
import subprocess
from importlib.metadata import version
from pathlib import Path

from include.airflow.client import USER, AirflowApi, airflow_home, passwords_path
from include.airflow.database import database_url
from include.airflow.names import SPARK_LAKE_CONNECTION, SPARK_STREAM_CONNECTION, STATUS_PAGE
from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, write_atomically
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.stream_config import LOCAL_MASTER
from stack.readiness import Listener
from stack.supervision.configuration import SECRET_VARIABLES
from stack.supervision.process import Process
from stack.tools import Tools

START_ORDER = 30
# After the query nodes: if one is not replaced, the tasks keep their settings as well.
UPDATE_ORDER = 25
# What its processes run, and what its tasks start.
CODE = ("dags", "include", "spark_jobs", "stack", "requirements.txt", "requirements-stream.txt")


class AirflowSetupError(FoldlakeError):
    """Airflow's database could not be prepared."""


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment variables of Airflow's commands: Airflow's whole configuration, and these settings."""
    return {**settings_environment(settings), **configuration(settings)}


def configuration(settings: Settings) -> dict[str, str]:
    """Return Airflow's whole configuration, as environment variables: a change of it restarts Airflow's processes."""
    url = settings.airflow.base_url
    return {
        **_RECOVERY,
        "AIRFLOW_HOME": str(airflow_home(settings.home)),
        "PYTHONPATH": str(CHECKOUT),
        # The interpreter that the scripts in stack/bin use.
        "FOLDLAKE_PYTHON": str(Tools(settings.tools).main_python),
        # Calls between Airflow's components stay on this machine, even if the user has configured a proxy.
        "NO_PROXY": ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"))),
        f"AIRFLOW_CONN_{SPARK_STREAM_CONNECTION.upper()}": json.dumps(
            # The number of task slots depends on the declarations: the job's launcher computes it.
            {"conn_type": "spark", "host": settings.stream.master or LOCAL_MASTER}
        ),
        f"AIRFLOW_CONN_{SPARK_LAKE_CONNECTION.upper()}": json.dumps(
            {"conn_type": "spark", "host": settings.lake.master}
        ),
        # Airflow sets the permissions of its logs itself, and ignores the umask.
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(CHECKOUT / "include" / "airflow" / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(settings.airflow.parallelism),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__HOSTNAME_CALLABLE": "socket.gethostname",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_path(settings.home)),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(settings.airflow.port),
        "AIRFLOW__API__BASE_URL": settings.airflow.pages_url,
        # Also how long the server waits for open connections when it stops.
        "AIRFLOW__API__WORKER_TIMEOUT": "5",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database_url(settings.home, settings.airflow),
    }


# These settings determine how soon a killed part of Airflow is detected. With Airflow's defaults it takes five minutes.
_RECOVERY = {
    # Need not be short: a new scheduler marks its dead predecessor as failed (stack/components/airflow_component.py).
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    # A task without a heartbeat for 20 s is considered dead: the API server restarts in less time.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "3",
    # Only the scheduler declares a task dead: the task's supervisor would end a healthy stream.
    "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "1000",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "3",
    # A task that was queued by a dead scheduler is queued again.
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
    # A new DAG file is detected within this time. Unchanged ones are read again every 30 s, Airflow's default, for 5 % of a core: the next
    # run of a @continuous DAG whose run was marked by an operator waits for that.
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
}


def prepare(settings: Settings) -> None:
    """Create Airflow's home, login and database; quick when they already exist.

    Raises:
        AirflowSetupError: the database could not be created or migrated.
    """
    airflow_home(settings.home).mkdir(parents=True, exist_ok=True)
    _prepare_login(settings.home, settings.airflow.password.get_secret_value())
    _prepare_database(settings)


def settings_file(home: Path) -> Path:
    """Return the file with the settings that Airflow's tasks read when they start."""
    return home / "run" / "airflow-settings.json"


def task_settings(settings: Settings) -> dict[str, str]:
    """Return what the file contains: all settings but secrets, which are in the environment of Airflow's processes."""
    return {
        name: value for name, value in settings_environment(settings).items() if name not in SECRET_VARIABLES
    }


def update(settings: Settings, _listener: Listener) -> None:
    """Write the settings for the tasks that start from now on, and for the next reading of the DAGs."""
    write_atomically(
        settings_file(settings.home), json.dumps(task_settings(settings), indent=1), mode=PRIVATE_FILE
    )


def processes(settings: Settings) -> list[Process]:
    """Return Airflow's processes. They start in any order: each waits for the others that it needs."""
    health = AirflowApi(settings.airflow.base_url).health
    python = str(Tools(settings.tools).main_python)
    common = {**configuration(settings), STATUS_PAGE: settings.reports_base_url}

    def component(name: str, *arguments: str, health_name: str, port: int | None = None) -> Process:
        return Process(
            name=f"airflow-{name}",
            command=(python, "-m", "stack.components.airflow_component", name, *arguments),
            start_order=START_ORDER,
            is_ready=lambda: health_name in health(),
            port=port,
            port_setting="FOLDLAKE_AIRFLOW_PORT" if port else "",
            environment=common,
            ready_timeout_s=240,
            stop_timeout_s=30,
            settings_file=settings_file(settings.home),
            code=CODE,
        )

    # The API server reads the log files directly: no log server is needed.
    return [
        component("api-server", port=settings.airflow.port, health_name="metadatabase"),
        component("scheduler", "--skip-serve-logs", health_name="scheduler"),
        component("dag-processor", health_name="dag_processor"),
        component("triggerer", "--skip-serve-logs", health_name="triggerer"),
    ]


def _prepare_login(home: Path, password: str) -> None:
    path = passwords_path(home)
    if password or not path.exists():
        path.touch(mode=0o600)
        path.write_text(json.dumps({USER: password or secrets.token_urlsafe(9)}))


def _prepare_database(settings: Settings) -> None:
    """Run `airflow db migrate` unless this version of Airflow has already migrated this database."""
    stamp = airflow_home(settings.home) / "migrated.txt"
    url = database_url(settings.home, settings.airflow)
    # A digest: the URL may contain a password.
    wanted = f"{version('apache-airflow-core')} {hashlib.sha256(url.encode()).hexdigest()}"
    database = airflow_home(settings.home) / "airflow.db"
    exists = database.exists() or bool(settings.airflow.database_url)
    if exists and stamp.exists() and stamp.read_text() == wanted:
        return
    done = subprocess.run(
        (str(Tools(settings.tools).main_python), "-m", "airflow", "db", "migrate"),
        env={**os.environ, **environment(settings)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AirflowSetupError(
            f"`airflow db migrate` failed with exit code {done.returncode}: {done.stderr.strip()[-2000:]}\n"
            f"Hint: check FOLDLAKE_AIRFLOW_DATABASE_URL. An embedded database can be deleted: {database}"
        )
    stamp.write_text(wanted)
