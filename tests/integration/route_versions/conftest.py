"""A home with a route of two versions, a read model behind it and its emission, on the shared servers."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import first_version
from tests.integration.emissions.receipts import Deposits
from tests.integration.route_versions.region_receipts import DECLARATIONS, READ_MODEL, SOURCE
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home whose read model has a first version, which folds the first version of the routed topic."""
    with sharing_servers(
        servers,
        keep_home,
        partitions=2,
        stream_shuffle_partitions=2,
        stream_spare_queries=1,
        **SHORT_COMMITS,
        read_models_dir=DECLARATIONS,
    ) as home:
        with VersionRegistry(home.kafka_connection) as registry:
            registry.ensure_topic()
            registry.compare_and_set(first_version(READ_MODEL, fold_revision=1), expected_revision=0)
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
