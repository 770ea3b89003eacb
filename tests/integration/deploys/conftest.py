"""A whole stack with a folder of declarations, which the tests change, and with a standby driver."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from stack.lifecycle import start
from tests.integration.deploys.traffic import Traffic
from tests.support.temporary_stack import sharing_servers


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of declarations, empty at first."""
    return tmp_path_factory.mktemp("declarations")


@pytest.fixture(scope="package")
def stack(servers: Settings, folder: Path, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a stack with every component up."""
    changed = {"read_models_dir": folder, "stream_standby": "on", "compaction_interval_s": 0}
    with sharing_servers(servers, keep_home, **changed) as home:
        start(home)
        yield home


@pytest.fixture(scope="package")
def traffic(stack: Settings) -> Traffic:
    """The traffic on the stack, which has folded and serves a few events."""
    found = Traffic(stack)
    found.settle()
    return found
