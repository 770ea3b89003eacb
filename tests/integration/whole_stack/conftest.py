"""A whole stack: Kafka, the schema registry, both query nodes and Airflow, and therefore the stream driver."""

from collections.abc import Callable, Iterator

import pytest

from include.airflow import client
from include.airflow.client import AirflowApi, airflow_api, airflow_home
from include.settings import Settings
from include.versions.registry import VersionRegistry
from stack.lifecycle import start
from stack.stack_guard import guarded
from tests.support.faults.small_disk import SmallDisk, small_disk_if_permitted
from tests.support.temporary_stack import temporary_home, temporary_settings
from tests.support.waiting import wait_until

AIRFLOW_DISK_MB = 512
TIMEOUT_S = 600.0
API_TIMEOUT_S = 60.0


@pytest.fixture(scope="package")
def airflow_disk(keep_home: Callable[[], bool]) -> Iterator[SmallDisk]:
    """The disk of Airflow's database and logs; only a directory where mounting is not permitted."""
    with (
        temporary_home(keep_home) as home,
        small_disk_if_permitted(airflow_home(home), AIRFLOW_DISK_MB) as disk,
    ):
        yield disk


@pytest.fixture(scope="package")
def full_stack(airflow_disk: SmallDisk) -> Iterator[Settings]:
    """Settings of a stack with every component up, for this folder only: other folders delete the topics that they share."""
    # No scheduled compactions: only the tests run one. There is no other load, so lake jobs need no low priority.
    settings = temporary_settings(airflow_disk.path.parent, compaction_interval_s=0)
    with guarded(settings):
        start(settings)
        yield settings


@pytest.fixture(scope="package")
def stack(full_stack: Settings) -> Settings:
    """The stack, once its driver has registered version 1 of the balance."""
    wait_until(
        lambda: "balance" in VersionRegistry(full_stack.kafka_connection).read(),
        "version 1",
        TIMEOUT_S,
    )
    return full_stack


@pytest.fixture(scope="package")
def api(stack: Settings) -> Iterator[AirflowApi]:
    """The API of the stack's Airflow, which may respond late: the tests of the other worker keep the cores busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "REQUEST_TIMEOUT_S", API_TIMEOUT_S)
        yield airflow_api(stack.home, stack.airflow)
