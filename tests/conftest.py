"""How the tests are distributed over worker processes, with `--numprocesses`."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The worker that does not run the unit tests begins with the whole stack's: they mostly wait, while the lake's keep a core busy. The
# shorter folders come last, so that neither worker waits long for the other at the end.
FOLDER_ORDER = (
    "tests/unit",
    "tests/integration/whole_stack",
    "tests/integration/lake",
    "tests/integration/stream",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of these folders first."""

    def place(item: pytest.Item) -> int:
        under = (place for place, folder in enumerate(FOLDER_ORDER) if item.nodeid.startswith(f"{folder}/"))
        return next(under, len(FOLDER_ORDER))

    items.sort(key=place)


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
    """Gives each worker whole folders of tests, in order, because the tests of a folder share their fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        folder, _, _ = nodeid.partition("::")[0].rpartition("/")
        return folder


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler."""
    return FolderScheduling(config, log)
