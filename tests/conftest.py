"""How the tests are distributed over worker processes, with `--numprocesses`."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
    """Gives each worker whole folders of tests, in order, because the tests of a folder share their fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        folder, _, _ = nodeid.partition("::")[0].rpartition("/")
        return folder


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler."""
    return FolderScheduling(config, log)
