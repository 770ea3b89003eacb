"""A read model with an emit interval writes few records, and exact ones, also if its driver is killed with -9."""

import time
from collections import Counter, defaultdict
from decimal import Decimal

from include.declarations.load import load_catalog
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from tests.integration.emissions.receipts import START, Deposits
from tests.integration.flows.conftest import INTERVAL_S
from tests.support.stream_process import records_of, states
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

MODEL = load_catalog().models["balance"]
CHANGELOG = "balance.v1.changelog"
CUSTOMERS = ("a", "b", "c")
ROUNDS, ROUND_S = 80, 0.1


def test_an_interval_has_at_most_one_record_for_each_key(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    """The driver was killed before."""

    def is_folded() -> bool:
        amounts: dict[str, Decimal] = defaultdict(Decimal)
        for event in deposits.events:
            amounts[event.customerId] += event.amount
        found = states(settings, MODEL, CHANGELOG)
        return {key: record.state["amount"] for key, record in found.items()} == amounts

    driver.ensure_running()
    wait_until(is_folded, "the driver has folded all deposits")
    began_s, before = time.monotonic(), records_by_key(settings)
    for _ in range(ROUNDS):
        deposits.source.append(
            deposits.add(FundsAdded(customerId=key, amount=Decimal("0.75"), occurredOn=START))
            for key in CUSTOMERS
        )
        time.sleep(ROUND_S)
    wait_until(is_folded, "the newest states are written")
    # Of the batches that began in this time, and of one that had begun before.
    at_most = (time.monotonic() - began_s) // INTERVAL_S + 2
    written = records_by_key(settings) - before
    assert at_most < ROUNDS
    assert set(written) == set(CUSTOMERS)
    assert max(written.values()) <= at_most
    folds = {fold.name: fold for fold in read_stream_status(settings).of_kind(FlowKind.FOLD)}
    assert folds["balance"].emit_every_s == INTERVAL_S


def records_by_key(settings: Settings) -> Counter[str]:
    keys = [message.key() for message in records_of(settings, CHANGELOG)]
    return Counter(key.decode() for key in keys if isinstance(key, bytes))
