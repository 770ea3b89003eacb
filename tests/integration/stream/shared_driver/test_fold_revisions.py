"""A version keeps its fold revision: the running driver loads a new revision and refuses an edited one."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from include.declarations.load import read_model
from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.query_reports import CONTINUOUS, query_status
from include.versions.registry import VersionRegistry, change
from include.versions.transitions import hand_over, register
from tests.support.stream_process import EventSource, records_of, states
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

MODEL = "allowances"
MODULE = """
from include.declarations.read_model import ReadModel, StateField, decimal_type

def customer():
    from pyspark.sql.functions import col
    return col("customerId")

def plain():
    from pyspark.sql import functions as F
    return {"amount": F.sum(PLAIN)}

def with_bonus():
    from pyspark.sql import functions as F
    amount = F.col("amount")
    # A higher-order function: Spark names its lambda variables differently each time.
    gifts = F.aggregate(F.array(amount), F.lit(0).cast("long"), lambda count, _: count + 1)
    return {"amount": F.sum(F.round(amount * F.lit("1.01").cast("decimal(3,2)"), 2)), "gifts": F.sum(gifts)}

DECLARATIONS = [ReadModel(
    name="allowances", source_topic="allowances", event_types=("FundsAdded",), key=customer,
    state=STATE, folds=FOLDS,
)]
"""
AMOUNT = 'StateField("amount", decimal_type(4, 2), "What was saved, up to 99.99.")'
GIFTS = 'StateField("gifts", "long", "Number of gifts.", since=2)'


def write_module(folder: Path, *, bonus: bool, plain: str = 'F.col("amount")') -> None:
    state, folds = (
        (f"({AMOUNT}, {GIFTS})", "{1: plain, 2: with_bonus}") if bonus else (f"({AMOUNT},)", "{1: plain}")
    )
    text = MODULE.replace("STATE", state).replace("FOLDS", folds).replace("PLAIN", plain)
    (folder / "allowances.py").write_text(text, encoding="utf-8")


@pytest.fixture
def settings(stream_stack: Settings, tmp_path: Path) -> Settings:
    write_module(tmp_path, bonus=False)
    return stream_stack.changed(read_models_dir=tmp_path, stream_spare_queries=1)


def phase(settings: Settings, number: int) -> str:
    status = query_status(settings.kafka_connection, MODEL, number)
    return "unknown" if status is None else status.phase


def amounts(settings: Settings, number: int) -> dict[str, Decimal]:
    model = read_model(MODEL, settings.declaration_folders, reload=True)
    topic = f"{MODEL}.v{number}.changelog"
    return {key: record.state["amount"] for key, record in states(settings, model, topic, number).items()}


def removed(settings: Settings, number: int) -> set[str]:
    """Return the keys whose newest record names the field that cannot be written."""
    newest = {message.key(): message for message in records_of(settings, f"{MODEL}.v{number}.changelog")}
    failure = b"field amount: its value is none of its type"
    return {
        (key or b"").decode()
        for key, message in newest.items()
        if dict(message.headers() or ()).get("failure") == failure
    }


def test_new_revision_needs_no_restart_and_an_edited_one_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    registry = VersionRegistry(settings.kafka_connection)
    source = EventSource(settings, MODEL)

    def append(count: int, customer: str = "saver", amount: str = "10.00") -> None:
        source.append(FundsAdded(customerId=customer, amount=Decimal(amount)) for _ in range(count))

    with stream_driver(settings):
        wait_until(lambda: phase(settings, 1) in CONTINUOUS, "version 1 is folded")
        append(2, "spender", "60.00")
        append(3)
        wait_until(
            lambda: (
                amounts(settings, 1) == {"saver": Decimal("30.00")} and removed(settings, 1) == {"spender"}
            ),
            "revision 1 is folded; the state of a key that cannot be written is removed, and stops nothing",
        )
        registration = partial(
            register, run_id="test", reason="bonus", fold_revision=2, now=datetime.now(UTC)
        )
        change(registry, MODEL, registration)
        change(registry, MODEL, partial(hand_over, number=2))
        wait_until(lambda: phase(settings, 2) == "refused", "the module has no revision 2 yet")
        status = query_status(settings.kafka_connection, MODEL, 2)
        assert status is not None
        assert "fold revision 2 of allowances, and the module has only [1]: put it back" in status.last_error
        write_module(tmp_path, bonus=True)
        wait_until(lambda: phase(settings, 2) in CONTINUOUS, "revision 2 is loaded")
        append(1)
        wait_until(lambda: amounts(settings, 2) == {"saver": Decimal("40.40")}, "revision 2 is folded")
        wait_until(
            lambda: amounts(settings, 1) == {"saver": Decimal("40.00")}, "version 1 is folded as before"
        )
        append(1, "spender", "-30.00")
        wait_until(
            lambda: (
                [amounts(settings, number).get("spender") for number in (1, 2)]
                == [Decimal("90.00"), Decimal("90.90")]
            ),
            "the state can be written again",
        )
        append(1, "spender", "60.00")
        wait_until(lambda: removed(settings, 1) == removed(settings, 2) == {"spender"}, "removed again")

    def refusal_reason(number: int) -> str:
        status = query_status(settings.kafka_connection, MODEL, number)
        return status.last_error if status is not None and status.phase == "refused" else ""

    write_module(tmp_path, bonus=True, plain="undefined()")
    with stream_driver(settings):
        wait_until(lambda: phase(settings, 2) in CONTINUOUS, "version 2 is resumed")
        append(1)
        wait_until(lambda: amounts(settings, 2) == {"saver": Decimal("50.50")}, "version 2 is folded")
        assert "cannot be built (NameError: name 'undefined' is not defined)" in refusal_reason(1)
        write_module(tmp_path, bonus=True, plain='F.col("amount") * 2')
        wait_until(
            lambda: "undo the edit, and add the new fold as a new revision" in refusal_reason(1),
            "still refused",
        )
        assert amounts(settings, 1) == {"saver": Decimal("40.00")}, "new code never continues old state"
        write_module(tmp_path, bonus=True)
        wait_until(
            lambda: amounts(settings, 1) == {"saver": Decimal("50.00")},
            "version 1 is resumed with its own fold",
        )
    registry.close()
