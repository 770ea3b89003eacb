"""How Foldlake's own processes log in to this Airflow: user, password, and a client that uses them."""

import json
from pathlib import Path

from include.airflow.client import AirflowApi
from include.settings import AirflowSettings

USER = "admin"


def airflow_home(home: Path) -> Path:
    """Return AIRFLOW_HOME."""
    return home / "airflow"


def passwords_path(home: Path) -> Path:
    """Return the file in which Airflow's simple auth manager stores the passwords: a JSON object, user -> password."""
    return airflow_home(home) / "passwords.json"


def password(home: Path, airflow: AirflowSettings) -> str:
    """Return the password of Airflow's user `admin`: the setting, or the one generated for this home.

    Raises OSError, ValueError or KeyError when the file that stores it is missing or unreadable.
    """
    return airflow.password or str(json.loads(passwords_path(home).read_text())[USER])


def airflow_api(home: Path, airflow: AirflowSettings) -> AirflowApi:
    """Return a client of this Airflow, which logs in at its first call; raises the same errors as `password`."""
    return AirflowApi(airflow.base_url, USER, password(home, airflow))
