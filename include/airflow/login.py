"""How Foldlake's own processes log in to this Airflow: user, password, and a client that uses them."""

import json
from pathlib import Path

from include.airflow.client import AirflowApi
from include.settings import Settings

USER = "admin"


def airflow_home(home: Path) -> Path:
    """Return AIRFLOW_HOME."""
    return home / "airflow"


def passwords_path(settings: Settings) -> Path:
    """Return the file in which Airflow's simple auth manager stores the passwords: a JSON object, user -> password."""
    return airflow_home(settings.home) / "passwords.json"


def password(settings: Settings) -> str:
    """Return the password of Airflow's user `admin`: the setting, or the one generated for this home.

    Raises OSError, ValueError or KeyError when the file that stores it is missing or unreadable.
    """
    return settings.airflow.password or str(json.loads(passwords_path(settings).read_text())[USER])


def airflow_api(settings: Settings) -> AirflowApi:
    """Return a client of this Airflow, which logs in at its first call; raises the same errors as `password`."""
    return AirflowApi(settings.airflow.base_url, USER, password(settings))
