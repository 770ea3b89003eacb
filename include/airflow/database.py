"""Airflow's database: its URL, and the removal of old rows, for which Airflow's own models are needed.

Airflow denies its tasks access to the database, so the removal runs in a process of its own.
"""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from include.airflow.client import airflow_home
from include.errors import FoldlakeError
from include.settings import CHECKOUT, AirflowSettings

SQLITE = "sqlite:///"
# Begins each line that include/airflow/database_cleanup.py reports.
REPORTED = "removed: "


class DatabaseCleanupError(FoldlakeError):
    """Old rows could not be removed from Airflow's database."""


def database_url(home: Path, airflow: AirflowSettings) -> str:
    """Return the SQLAlchemy URL of Airflow's database: the setting, with its password, or SQLite in Airflow's home."""
    given = airflow.database_url.get_secret_value()
    if not given:
        return f"{SQLITE}{airflow_home(home) / 'airflow.db'}"
    parts = urlsplit(given)
    user, has_user, host = parts.netloc.rpartition("@")
    if not (airflow.database_password and has_user) or ":" in user:
        return given
    netloc = f"{user}:{quote(airflow.database_password.get_secret_value(), safe='')}@{host}"
    return urlunsplit(parts._replace(netloc=netloc))


def sqlite_file(url: str) -> Path | None:
    """Return the file of a database in SQLite; None for any other URL."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def clean_database(url: str, before: datetime) -> str:
    """Remove what ended before this time; return what was removed, in one line.

    Raises DatabaseCleanupError. It may be killed and repeated at any point.
    """
    # In a task, Airflow has replaced the URL, also in the section of earlier releases.
    environment = {
        name: value for name, value in os.environ.items() if name != "AIRFLOW__CORE__SQL_ALCHEMY_CONN"
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "include.airflow.database_cleanup", before.isoformat()],
        env={**environment, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # The URL may contain a password, so only the last line is shown: the message of the error.
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1].replace(url, "<database>")
        raise DatabaseCleanupError(
            f"Rows from before {before:%Y-%m-%d %H:%M} UTC could not be removed from Airflow's database: {reason}. Airflow itself is "
            "not affected. Hint: check that the database is up and not locked; the next run continues."
        )
    lines = done.stdout.splitlines()
    return "; ".join(line.removeprefix(REPORTED) for line in lines if line.startswith(REPORTED))
