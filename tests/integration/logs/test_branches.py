"""Every branch of the system `logs` gives exactly what the oracle says, although the driver was killed in between."""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import cast

import pytest

from demo.logs.comparison import BRANCHES, STATES, Branch, Check, Result
from demo.logs.lines import product_id
from include.declarations.load import read_model
from include.settings import Settings
from include.settings.systems import system_folder
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from tests.integration.logs.conftest import NAMED_LATE
from tests.support.stream_process import records_of, states
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(900)]
SYSTEM = (system_folder("logs"),)


@pytest.mark.parametrize("branch", BRANCHES, ids=lambda branch: branch.name)
def test_a_branch_writes_each_record_once(check: Check, branch: Branch) -> None:
    def result() -> Result:
        check.read()
        return check.compare(branch)

    wait_until(lambda: result().missing == 0, f"{branch.name} has caught up", timeout_s=600, poll_s=3)

    found = check.compare(branch)
    assert found.is_exact, found
    assert found.found > 0


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_every_key_is_exact(settings: Settings, check: Check, name: str) -> None:
    wait_until(
        lambda: compared_states(settings, check, name).is_exact,
        f"{name} is exact",
        timeout_s=240,
        poll_s=3,
    )


def test_the_alert_is_of_the_view_that_reaches_the_threshold_or_of_the_first_name(check: Check) -> None:
    check.read()
    found = check.connection.execute('select "productId", views from found_popular').fetchall()
    counts = dict(check.connection.execute("from expected_counts").fetchall())

    at = dict(found)
    assert at.pop(product_id(NAMED_LATE)) == counts[product_id(NAMED_LATE)]
    assert set(at.values()) == {1_000}


def test_all_counts_are_written_at_each_tick_once_whether_changed_or_not(
    settings: Settings, check: Check
) -> None:
    topic = "product-view-counts"

    def ticks() -> dict[int, Counter[bytes]]:
        found: dict[int, Counter[bytes]] = defaultdict(Counter)
        for message in records_of(settings, topic):
            headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
            found[int(headers["tick"])][cast("bytes", message.key())] += 1
        return found

    def values(tick: int) -> set[bytes]:
        """Return the values of a tick without their last field, the time of the tick, which takes 6 bytes."""
        return {
            (message.value() or b"")[:-6]
            for message in records_of(settings, topic)
            if ("tick", str(tick).encode()) in (message.headers() or [])
        }

    model = read_model("product-views", SYSTEM)
    wait_until(
        lambda: compared_states(settings, check, "product-views").is_exact,
        "product-views is exact",
        timeout_s=240,
        poll_s=3,
    )
    before = max(ticks(), default=0)
    # The first tick that begins after all states are there, and the next: nothing has changed in between. A third one shows that the second is whole.
    wait_until(lambda: len([tick for tick in ticks() if tick > before + 2_000]) >= 3, "ticks")
    written = ticks()
    del written[max(written)]
    first, second, *_ = sorted(tick for tick in written if tick > before + 2_000)

    assert all(tick % 2_000 == 0 for tick in written)
    assert {count for keys in written.values() for count in keys.values()} == {1}
    keys = {key.encode() for key in states(settings, model, "product-views.v1.changelog")}
    assert set(written[first]) == set(written[second]) == keys
    assert values(first) == values(second)
    (emission,) = read_stream_status(settings).of_kind(FlowKind.PERIODIC)
    assert (emission.name, emission.emit_every_s) == ("product-view-counts", 2.0)
    assert emission.newest_output_age_s is not None
    # Each tick is whole: a product that was there does not leave.
    ordered = [set(written[tick]) for tick in sorted(written)]
    assert all(earlier <= later for earlier, later in pairwise(ordered))


def are_exact(settings: Settings, check: Check) -> bool:
    """Whether the states of all read models are exact on their changelogs."""
    return all(compared_states(settings, check, name).is_exact for name in STATES)


def compared_states(settings: Settings, check: Check, name: str) -> Result:
    found = states(settings, read_model(name, SYSTEM), f"{name}.v1.changelog")
    return check.compare_states(name, {key: record.state for key, record in found.items()})
