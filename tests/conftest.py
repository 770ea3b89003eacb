"""How the tests are distributed over worker processes, with `--numprocesses`, and when failures are printed."""

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
    """Gives each worker whole folders of tests, in order, because the tests of a folder share their fixtures.

    The modules directly in `tests/integration` share none, and come last: both workers take one after another of them.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        folder, _, _ = module.rpartition("/")
        return module if folder == "tests/integration" else folder


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler."""
    return FolderScheduling(config, log)


class PromptFailures:
    """Prints the name of each test as it fails: a run that is stopped half-way prints no summary."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        """Print to this terminal."""
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the name if the test failed."""
        if report.failed:
            self._terminal.write_line(
                f"\nFAILED ({report.when}, after {report.duration:.0f} s): {report.nodeid}", red=True
            )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print failures as they happen where workers run the tests: they do not print themselves."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and session.config.getoption("numprocesses", default=None):
        session.config.pluginmanager.register(PromptFailures(terminal), "prompt-failures")
