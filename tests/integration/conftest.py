"""The one real stack that all integration tests of a run share: Kafka and the schema registry.

What else the tests of a folder need runs only for as long as they do, in a home of its own on these servers
(`sharing_servers`). The tests with Airflow come last and start the rest of this stack.
"""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.support.temporary_stack import temporary_stack


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of the whole stack last, in whatever order the folders are named: what they start stays up."""
    items.sort(key=lambda item: "whole_stack" in item.path.parts)


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Let JVMs use the quick compiler only: most live for seconds here, and the thorough one takes their cores."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def keep_home(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Return a function: whether the home of a stack, with its logs, is worth keeping."""
    session = request.session
    return lambda: session.testsfailed > 0


@pytest.fixture(scope="session")
def servers(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with Kafka and the schema registry up, on free ports, in a directory of its own."""
    with temporary_stack(
        ("kafka", "registry"),
        keep_home,
        # No compaction but the tests' own.
        compaction_interval_s=0,
        # No other load runs here, so a job of the lake needs no low priority.
        lake_niceness=0,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def settings(servers: Settings) -> Settings:
    """The settings of most tests: those of the shared stack, unless their folder or module has others."""
    return servers
