"""The one real stack that integration tests of a run share: Kafka and the schema registry.

What more the tests of a folder need runs for as long as that folder's tests do: two cores cannot bear all of it at once.
"""

from collections.abc import Iterator

import pytest

from include.settings import Settings
from tests.support.temporary_stack import temporary_stack


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Have every JVM compile once and simply: most live for seconds here, and the thorough compiler takes their cores."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@pytest.fixture(scope="session")
def settings(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings of a stack with Kafka and the schema registry up, on free ports, in a directory of its own."""
    session = request.session
    with temporary_stack(
        ("kafka", "registry"),
        keep_home=lambda: session.testsfailed > 0,
        # No compaction but the tests' own.
        compaction_interval_s=0,
        # The load that a job of the lake gives way to never ends here.
        lake_niceness=0,
    ) as running:
        yield running
