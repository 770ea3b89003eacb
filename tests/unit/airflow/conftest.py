"""The DAGs, loaded once, and what loads those of another environment."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from include.settings import Settings
from stack.components import airflow
from tests.support.airflow.dag_loading import Loaded, dag_loader


@pytest.fixture(scope="package")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, str]], Loaded]]:
    """Return the DAGs of an environment."""
    folder = tmp_path_factory.mktemp("airflow")
    with dag_loader(folder, airflow.environment(Settings.of(home=folder / "home"))) as found:
        yield found


@pytest.fixture(scope="package")
def loaded(
    load: Callable[[dict[str, str]], Loaded], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    return load(airflow.environment(Settings.of(home=tmp_path_factory.mktemp("home"))))
