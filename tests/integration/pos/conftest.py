"""A home with the declarations of the system `pos`, on the shared servers."""

from collections.abc import Callable, Iterator

import pytest

from demo.pos.dataset import SYSTEM
from include.settings import Settings
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with the declarations of demo/systems/pos."""
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=0,
        **SHORT_COMMITS,
        systems=(SYSTEM.name,),
    ) as home:
        yield home


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared
