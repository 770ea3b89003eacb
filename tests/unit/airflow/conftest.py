"""The DAGs, loaded once."""

from typing import Any

import pytest

from include.settings import Settings
from stack.components import airflow
from tests.support.airflow.dag_loading import load


@pytest.fixture(scope="package")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return load(airflow.environment(Settings.of(home=tmp_path_factory.mktemp("home"))))
