"""The stack that all integration tests of a run share, apart from the whole stack's: a real Kafka broker and schema registry.

The other components that a folder's tests need run only during these tests, in a separate home that uses these servers
(`sharing_servers`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from stack.declaration_testing.session import QUICK_JIT
from stack.lifecycle import start
from stack.stack_guard import guarded
from tests.support import dummy_servers
from tests.support.temporary_stack import temporary_settings, temporary_stack


@pytest.fixture(scope="session", autouse=True)
def quick_jit() -> Iterator[None]:
    """Limit JVMs to the C1 compiler: most run for only seconds here, and C2 would take their cores."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JDK_JAVA_OPTIONS", QUICK_JIT)
        yield


@pytest.fixture(scope="session")
def keep_home(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Return a function that decides whether to keep the home of a stack with its logs."""
    session = request.session
    return lambda: session.testsfailed > 0


@pytest.fixture(scope="session")
def servers(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with Kafka and the schema registry up, on free ports, in a new directory."""
    with temporary_stack(("kafka", "registry"), keep_home) as running:
        yield running


@pytest.fixture(scope="session")
def settings(servers: Settings) -> Settings:
    """The settings of most tests: those of the shared stack, unless their folder or module overrides this fixture."""
    return servers


@pytest.fixture
def dummies_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a stack of dummy servers that are not started."""
    monkeypatch.setattr("stack.lifecycle.component_modules", dummy_servers.components)
    settings = temporary_settings(tmp_path / "home")
    with guarded(settings):
        yield settings


@pytest.fixture
def dummies(dummies_home: Settings) -> Settings:
    """The same stack with both servers up."""
    start(dummies_home, dummy_servers.NAMES)
    return dummies_home
