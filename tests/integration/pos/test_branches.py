"""Every branch of the system `pos` gives exactly what the oracle says, although the driver is killed."""

import hmac
import io
import re
from decimal import Decimal
from functools import partial
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from demo.examples_page import Example
from demo.log_tables import record_count
from demo.pos.analysis import EXAMPLES, PAGE, line_items, line_items_of_data_set
from demo.pos.branches import BRANCHES, LOYALTY, NOTIFICATIONS, TILLS, TREND, Branch, Check
from demo.pos.dataset import SYSTEM, Sales, read_sales
from demo.pos.loading import TOPIC, load
from demo.pos.made_up import Person
from include.declarations.load import read_model
from include.kafka.record_schema import schema_file
from include.kafka.wire_format import HEADER_BYTES
from include.lake.tables import table_path
from include.settings import Settings
from stack.launchers.direct_submit import launch
from stack.lifecycle import start
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower
from tests.support.lake.value_search import contents_of, values_in
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

FIRST, ALL = 1_500, 3_000
DOCUMENTED_PATH = ".foldlake/lake/trend"
DOCUMENTED_CARD = "1791412060619272"


def has_more(settings: Settings, before: int) -> bool:
    return record_count(settings, TREND.output) > before


def is_written(settings: Settings, branch: Branch, expected: int) -> bool:
    return record_count(settings, branch.output) >= expected


@pytest.fixture(scope="module")
def check(settings: Settings, driver: SharedDriver) -> Check:
    """The comparison, after a load that the driver was killed in."""
    driver.ensure_running()
    load(settings, TOPIC, read_sales(FIRST))
    before = record_count(settings, TREND.output)
    wait_until(partial(has_more, settings, before), "line items", timeout_s=180)
    driver.kill()
    load(settings, TOPIC, read_sales(ALL))
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


@pytest.fixture(scope="module")
def table(settings: Settings, driver: SharedDriver, check: Check) -> Path:
    """The folder of the event table `trend`, to which all line items were appended; the job's log is among those of the home."""
    for branch in BRANCHES:
        wait_until(partial(is_written, settings, branch, check.expected(branch)), branch.name, timeout_s=300)
    # The job has a low priority, and would wait for the driver's queries.
    driver.stop()
    job = launch(
        settings, "event_tables", ["--event-table", "trend"], settings.home / "logs" / "event-tables.log"
    )
    assert job.wait(300) == 0
    return Path(table_path(settings.lake_root, "trend"))


@pytest.fixture(scope="module")
def personal() -> set[str]:
    """The cards, telephone numbers and address lines of all customers of the sample."""
    sales: Sales = read_sales(ALL)
    people = {Person(sales.of_basket("household_id", number)) for number in range(len(sales))}
    return {
        text for person in people for text in (person.card, person.contact, person.address["addressLine"])
    }


def test_the_table_has_each_line_item_once(check: Check, table: Path) -> None:
    result = check.compare_table()

    assert result.is_exact, result
    assert result.found == check.expected(TREND) > 0
    months = {folder.name.removeprefix("occurred_month=") for folder in table.glob("occurred_month=*")}
    assert months == {
        f"{sold:%Y-%m}" for sold in DeltaTable(table).to_pyarrow_table()["occurredOn"].to_pylist()
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_the_analysts_examples_have_the_answers_of_the_data_set(table: Path, example: Example) -> None:
    connection = line_items(str(table))
    expected = line_items_of_data_set()
    expected.register(
        "invoices", connection.execute('select distinct "invoiceNumber" from trend').fetch_arrow_table()
    )
    expected.execute('delete from trend where "invoiceNumber" not in (from invoices)')

    found = connection.execute(example.query).fetchall()

    assert found == expected.execute(example.query).fetchall()
    assert found


def test_the_ways_to_open_the_table_in_the_docs_work(check: Check, table: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if DOCUMENTED_PATH in block]

    for block in blocks:
        names: dict[str, object] = {}
        exec(block.replace(DOCUMENTED_PATH, str(table)), names)  # noqa: S102 - code of our own docs
        assert names["number"] == check.expected(TREND)
    assert len(blocks) == 2


@pytest.fixture(scope="module")
def follower(
    tmp_path_factory: pytest.TempPathFactory, settings: Settings, check: Check, table: Path
) -> PageFollower:
    """Return a reader who looks up a card of the sample, and queries the table; its nodes read the changelog from here on."""
    assert table.exists()
    start(settings, ("query_nodes",))
    card = str(next(iter(check.cards())))
    return PageFollower(tmp_path_factory.mktemp("checkout"), settings, {DOCUMENTED_CARD: card})


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", blocks_run("pos"), ids=lambda block: block.place)
def test_an_example_of_a_page_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)


def test_line_items_for_analysts_have_no_personal_values(
    settings: Settings, table: Path, personal: set[str], tmp_path: Path
) -> None:
    route = Path(settings.checkpoints) / "route"
    written = [message.value() or b"" for message in records_of(settings, TREND.output)]

    assert values_in(personal, written) == set()
    assert values_in(personal, contents_of(table)) == set()
    assert values_in(personal, contents_of(settings.home / "logs")) == set()
    assert values_in(personal, contents_of(*route.glob("trend*"))) == set()

    # The search finds what is there: in records, and in a compressed file like those of the table.
    source = [message.value() or b"" for message in records_of(settings, TOPIC)]
    assert values_in(personal, source)
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"value": [f"<{value}>" for value in personal]}), file, compression="snappy")
    assert values_in(personal, contents_of(file)) == personal
    # It has searched the line items, whose pseudonyms and cities are in the table, and the driver's log.
    assert values_in(DeltaTable(table).to_pyarrow_table()["customer"].to_pylist()[:50], contents_of(table))
    assert values_in({"route/trend"}, contents_of(settings.home / "logs"))


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
