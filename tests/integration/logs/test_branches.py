"""Every branch of the system `logs` gives exactly what the oracle says, although the driver is killed in between."""

import pytest

from demo.log_tables import record_count
from demo.logs.catalogue import append_entries, first_entries, name_of
from demo.logs.comparison import BRANCHES, STATES, Branch, Check
from demo.logs.lines import PRODUCTS, log_lines, product_id
from demo.logs.loading import load_lines
from include.declarations.read_model import read_model
from include.settings import Settings
from include.settings.systems import system_folder
from tests.support.stream_process import states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

FIRST, ALL = 8_000, 26_000
# Has more than 1,000 views when it gets its first entry.
NAMED_LATE = 2
NAMES = {product_id(number): name_of(number) for number in range(1, PRODUCTS + 1)}


@pytest.fixture(scope="module")
def check(settings: Settings, driver: SharedDriver) -> Check:
    """The comparison, after a load that the driver was killed in."""
    entries = first_entries()
    append_entries(settings, [one for number, one in enumerate(entries, start=1) if number != NAMED_LATE])
    driver.ensure_running()
    load_lines(settings, FIRST)
    wait_until(lambda: record_count(settings, "captcha-requests") > 0, "captcha requests", timeout_s=300)
    driver.kill()
    load_lines(settings, ALL)
    driver.ensure_running()
    check = Check(settings, log_lines(ALL), NAMES)
    views = check.connection.execute("select count(*) from expected_views").fetchone()
    assert views is not None
    wait_until(
        lambda: record_count(settings, "product-views") >= views[0] + PRODUCTS - 1, "views", timeout_s=300
    )
    append_entries(settings, [entries[NAMED_LATE - 1]])
    return check


@pytest.mark.timeout(900)
@pytest.mark.parametrize("branch", BRANCHES, ids=lambda branch: branch.name)
def test_a_branch_writes_each_record_once(check: Check, branch: Branch) -> None:
    def result() -> object:
        check.read()
        return check.compare(branch)

    wait_until(lambda: result().missing == 0, f"{branch.name} has caught up", timeout_s=300)  # type: ignore[attr-defined]

    found = check.compare(branch)
    assert found.is_exact, found
    assert found.found > 0


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_every_key_is_exact(settings: Settings, check: Check, name: str) -> None:
    model = read_model(name, (system_folder("logs"),))

    def result() -> object:
        found = states(settings, model, f"{name}.v1.changelog")
        return check.compare_states(name, {key: record.state for key, record in found.items()})

    wait_until(lambda: result().is_exact, f"{name} is exact", timeout_s=240)  # type: ignore[attr-defined]
