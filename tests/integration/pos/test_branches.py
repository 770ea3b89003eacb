"""Every branch of the system `pos` gives exactly what the oracle says, however often the driver is killed."""

import hmac
import io
from decimal import Decimal
from functools import partial

import fastavro
import pytest

from demo.pos.branches import BRANCHES, LOYALTY, NOTIFICATIONS, TILLS, TREND, Branch, Check
from demo.pos.dataset import SYSTEM, Sales, read_sales
from demo.pos.loading import TOPIC, load
from demo.pos.made_up import Person
from demo.pos.outputs import record_count
from include.declarations.read_model import read_model
from include.kafka.record_schema import schema_file
from include.kafka.wire_format import HEADER_BYTES
from include.settings import Settings
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

FIRST, ALL = 1_500, 3_000
KILLS = 2


def has_more(settings: Settings, before: int) -> bool:
    return record_count(settings, TREND.output) > before


@pytest.fixture(scope="module")
def check(settings: Settings, driver: SharedDriver) -> Check:
    """The comparison, after a load that the driver was killed in."""
    driver.ensure_running()
    load(settings, TOPIC, read_sales(FIRST))
    for kill in range(KILLS):
        before = record_count(settings, TREND.output)
        wait_until(partial(has_more, settings, before), "line items", timeout_s=180)
        driver.kill()
        load(settings, TOPIC, read_sales(FIRST + (ALL - FIRST) * (kill + 1) // KILLS))
        driver.ensure_running()
    return Check(settings, ALL)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("branch", BRANCHES, ids=lambda branch: branch.name)
def test_a_branch_writes_each_record_once(settings: Settings, check: Check, branch: Branch) -> None:
    expected = check.expected(branch)
    wait_until(
        lambda: record_count(settings, branch.output) >= expected,
        f"{branch.name} has caught up",
        timeout_s=300,
    )

    result = check.compare(branch)

    assert result.is_exact, result
    assert result.found == expected > 0


def test_the_points_of_every_card_are_exact(settings: Settings, check: Check) -> None:
    model = read_model("loyalty", (SYSTEM,))

    def result() -> object:
        found = states(settings, model, "loyalty.v1.changelog")
        rows = [
            (
                card,
                state.state["points"],
                state.state["spent"],
                state.state["invoices"],
                state.state["cancellations"],
            )
            for card, state in found.items()
        ]
        return check.compare_points("changelog", rows)

    wait_until(lambda: result().is_exact, "the points are exact", timeout_s=240)  # type: ignore[attr-defined]


def test_a_second_load_appends_nothing(settings: Settings, check: Check) -> None:
    before = check.expected(TILLS)

    result = load(settings, TOPIC, read_sales(ALL))

    assert (result.appended, result.present) == (0, before)


def test_line_items_for_analysts_have_no_personal_values(settings: Settings, check: Check) -> None:
    sales: Sales = read_sales(ALL)
    people = {Person(sales.of_basket("household_id", number)) for number in range(len(sales))}
    personal = [
        text.encode()
        for person in people
        for text in (person.card, person.contact, person.address["addressLine"])
    ]
    values = b"\n".join(message.value() or b"" for message in records_of(settings, TREND.output))
    assert check.expected(TREND) > 0
    assert [text for text in personal if text in values] == []
    # The search finds what is there.
    assert any(
        text in b"\n".join(message.value() or b"" for message in records_of(settings, TOPIC))
        for text in personal
    )


def test_pseudonyms_are_the_keyed_hashes_of_card_and_contact(settings: Settings) -> None:
    key = (settings.home / "pseudonym.key").read_bytes()
    sales = read_sales(ALL)
    people = {
        str(sales.of_basket("basket_id", number)): Person(sales.of_basket("household_id", number))
        for number in range(len(sales))
    }
    schema = fastavro.parse_schema(schema_file(SYSTEM / "schemas" / "TrendRecord.avsc").parsed())
    for message in records_of(settings, TREND.output):
        record = fastavro.schemaless_reader(io.BytesIO((message.value() or b"")[HEADER_BYTES:]), schema, None)
        assert isinstance(record, dict)
        person = people[record["invoiceNumber"]]
        hashes = (
            hmac.new(key, text.encode(), "sha256").hexdigest() for text in (person.card, person.contact)
        )
        assert (record["customer"], record["contact"]) == tuple(hashes)
        place = (person.address["city"], person.address["state"])
        is_delivered = record["deliveryType"] == "HOME-DELIVERY"
        assert (record["city"], record["state"]) == (place if is_delivered else (None, None))
        assert record["itemPrice"] >= Decimal(0)


def test_the_sample_has_cancellations(check: Check) -> None:
    assert check.expected(TILLS) > ALL
    assert check.expected(NOTIFICATIONS) == check.expected(LOYALTY) > len(check.cards())
