"""A whole stack: Kafka, the schema registry, both query nodes and Airflow, and therefore the stream driver."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from stack.lifecycle import COMPONENTS
from tests.support.temporary_stack import temporary_stack


@pytest.fixture(scope="package")
def full_stack(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with every component up, for this folder only: other folders delete the topics that they share."""
    # No scheduled compactions: only the tests run one. There is no other load, so lake jobs need no low priority.
    with temporary_stack(tuple(COMPONENTS), keep_home, compaction_interval_s=0, lake_niceness=0) as running:
        yield running
