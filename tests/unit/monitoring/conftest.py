"""What nodes export, for the tests of rules and dashboard."""

from collections.abc import Iterator

import pytest

from tests.unit.monitoring.exported import Key, every_series
from tests.unit.monitoring.promtool import PACKAGE, binary


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[Key]]:
    """Series with every name and every closed set of values that nodes export."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path_factory.mktemp("metrics")))
        yield every_series()


@pytest.fixture(scope="session")
def promtool_or_skip() -> None:
    if binary() is None:
        pytest.skip(f"promtool is not on the PATH, and Debian's package {PACKAGE} cannot be downloaded")
