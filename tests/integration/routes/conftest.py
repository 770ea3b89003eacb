"""A home with a route and a read model of its output, on the shared servers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_routes"


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with the declarations of tests/support/read_models_with_routes."""
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=0,
        **SHORT_COMMITS,
        read_models_dir=DECLARATIONS,
    ) as home:
        yield home


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared
