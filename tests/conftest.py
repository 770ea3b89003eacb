"""How the tests are distributed over worker processes, with `--numprocesses`, and when failures are printed."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.distribution import DurationRecorder, order_of, part_of, read_durations

RECORD = "--record-durations"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that records durations."""
    parser.addoption(
        RECORD, action="store_true", help="write how long each part takes to tests/durations.txt"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the static checks first, then the parts that take longest; a part's tests keep their order."""
    durations = read_durations()
    items.sort(key=lambda item: order_of(item.nodeid, durations))


class PartScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no type hints
    """Gives the next part to the first worker that is free."""

    def _split_scope(self, nodeid: str) -> str:
        return part_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Return the scheduler."""
    return PartScheduling(config, log)


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


class Durations:
    """Writes the durations of a run."""

    def __init__(self) -> None:
        self._recorder = DurationRecorder()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time."""
        self._recorder.add(report.nodeid, report.duration)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self._recorder.write()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print failures as they happen where workers run the tests: they do not print themselves."""
    plugins, config = session.config.pluginmanager, session.config
    terminal = plugins.get_plugin("terminalreporter")
    if terminal is not None and config.getoption("numprocesses", default=None):
        plugins.register(PromptFailures(terminal), "prompt-failures")
    # Workers report to the main process.
    if config.getoption(RECORD) and not hasattr(config, "workerinput"):
        plugins.register(Durations(), "durations")
