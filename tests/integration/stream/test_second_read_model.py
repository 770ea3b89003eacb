"""Adding a read model takes one new file: the driver, the version registry, the topics and the schemas follow by themselves."""

from collections import Counter
from decimal import Decimal
from pathlib import Path

from include.declarations.read_model import read_model
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.versions.registry import VersionRegistry
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, states
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

READ_MODELS = Path(__file__).parents[2] / "support" / "read_models"
CHANGELOG = "deposits-per-day.v1.changelog"


def test_read_model_of_one_new_file_is_folded_beside_the_first(stream_stack: Settings) -> None:
    settings = stream_stack.changed(read_models_dir=READ_MODELS)
    ledger = Ledger(stream_stack)
    source = EventSource(settings, BALANCE.source_topic)
    source.append(ledger.random_events(2_000))
    mine = [
        FundsAdded(customerId="diarist", amount=Decimal(cents) / Decimal(100)) for cents in (500, 1_250, 75)
    ]
    source.append([ledger.note(event) for event in mine])
    model = read_model("deposits-per-day", READ_MODELS)
    days = Counter(f"{event.occurredOn:%Y-%m-%d}" for event in mine)

    def deposits() -> dict[str, int]:
        found = states(settings, model, CHANGELOG)
        return {key: r.state["deposits"] for key, r in found.items() if key.startswith("diarist/")}

    with stream_driver(settings):
        wait_until(
            lambda: deposits() == {f"diarist/{day}": count for day, count in days.items()}, "deposits folded"
        )
        wait_until(lambda: ledger.is_folded(settings), "balances folded")
        ledger.assert_exact(settings)
        largest = max(
            r.state["largest"] for k, r in states(settings, model, CHANGELOG).items() if "diarist" in k
        )
        assert largest == Decimal("12.50")
    assert VersionRegistry(settings.kafka.bootstrap_servers).read().keys() >= {"balance", "deposits-per-day"}
