"""The URL of Airflow's database, whose password may be a setting of its own."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from include.airflow.database import database_url
from include.settings import AirflowSettings

URL = "postgresql+psycopg2://airflow@postgres:5432/airflow?sslmode=disable"


@pytest.mark.parametrize(
    ("url", "password", "expected"),
    [
        ("", "unused", "sqlite:////home/airflow/airflow.db"),
        (URL, "", URL),
        (URL, "p@ss/w:rd", URL.replace("airflow@", "airflow:p%40ss%2Fw%3Ard@", 1)),
        (URL.replace("airflow@", "airflow:own@"), "other", URL.replace("airflow@", "airflow:own@")),
        ("sqlite:////data/airflow.db", "unused", "sqlite:////data/airflow.db"),
    ],
    ids=["sqlite", "without password", "with password", "the URL has one", "without user"],
)
def test_the_password_is_added_to_a_user_without_one(url: str, password: str, expected: str) -> None:
    airflow = AirflowSettings(database_url=SecretStr(url), database_password=SecretStr(password))

    assert database_url(Path("/home"), airflow) == expected
