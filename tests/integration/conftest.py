"""The stack that all integration tests of a run share: a real Kafka broker and schema registry.

The other components that a folder's tests need run only during these tests, in a separate home that uses these servers
(`sharing_servers`). The tests with Airflow come last and start the rest of this stack.
"""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.support.temporary_stack import temporary_stack


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of the whole stack last, regardless of the order of the arguments: what they start stays up."""
    items.sort(key=lambda item: "whole_stack" in item.path.parts)


@pytest.fixture(scope="session", autouse=True)
def quick_jit() -> Iterator[None]:
    """Limit JVMs to the C1 compiler: most run for only seconds here, and C2 would take their cores."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def keep_home(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Return a function that decides whether to keep the home of a stack with its logs."""
    session = request.session
    return lambda: session.testsfailed > 0


@pytest.fixture(scope="session")
def servers(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with Kafka and the schema registry up, on free ports, in a new directory."""
    with temporary_stack(
        ("kafka", "registry"),
        keep_home,
        # No scheduled compactions: only the tests run one.
        compaction_interval_s=0,
        # There is no other load, so lake jobs need no low priority.
        lake_niceness=0,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def settings(servers: Settings) -> Settings:
    """The settings of most tests: those of the shared stack, unless their folder or module overrides this fixture."""
    return servers
