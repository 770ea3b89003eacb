"""A home with an emission and its read model, on the shared servers."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.integration.emissions.receipts import DECLARATIONS, SOURCE, Deposits
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with the declarations of tests/support/read_models_with_emissions."""
    with sharing_servers(
        servers,
        keep_home,
        stream_spare_queries=1,
        **SHORT_COMMITS,
        read_models_dir=DECLARATIONS,
    ) as home:
        yield home


@pytest.fixture(scope="package")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    """A stream driver, which is not running yet."""
    with SharedDriver(settings) as shared:
        yield shared


@pytest.fixture(scope="package")
def deposits(settings: Settings) -> Deposits:
    """What is appended to the source."""
    make_topics(settings, SOURCE)
    return Deposits(EventSource(settings, SOURCE))
