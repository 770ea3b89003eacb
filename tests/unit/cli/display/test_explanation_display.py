"""What `./foldlake explain` prints: versions, then events in order with the state after each, within 80 columns."""

from rich.console import Console

from cli.display.explanation_display import print_explanation, printable
from include.versions.explanation import ExplainedEvent, ExplainedVersion, Explanation

TIME = "2026-01-02T03:04:05.000Z"


def an_event(number: int, amount: str, state: str | None) -> ExplainedEvent:
    event = f'{{"id":"0f0e9b54-7a0e-4ab7-8dcb-5ab9d9f2f0ac","customerId":"[7]","amount":{amount}}}'
    return ExplainedEvent(number, 3, 40_000 + number, TIME, TIME, "FundsAdded", event, state)


def test_the_explanation_fits_80_columns() -> None:
    found = Explanation(
        read_model="balance",
        key="[7]",
        explained_at=TIME,
        shown=ExplainedVersion(1, "live", 1, "balance", {}, 1_002, '{"amount":10.50}'),
        events=(
            an_event(1, "5.00", '{"amount":5.00}'),
            an_event(1_001, "5.00", '{"amount":10.00}'),
            an_event(1_002, "0.50", None),
        ),
        others=(ExplainedVersion(None, "", 2, "balance", {}, 0, None),),
        read_from={"3": 0},
        read_until={"3": 40_112},
        records_read=40_112,
        masked=("FundsAdded.name",),
        difference="node-1 serves another state.",
    )
    console = Console(width=80, highlight=False)

    with console.capture() as capture:
        print_explanation(console, found)

    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "[7] in balance v1 (live, fold 1)" in text
    assert "1,002 events of balance, among 40,112 records read: partition 3 from offset 0 to 40,111." in text
    assert "Fault: node-1 serves another state." in text
    assert "fold 2, no version yet 0 no record" in text
    assert "999 events not shown" in text
    assert "amount=10.00" in text
    assert "Left out, because they are personal: FundsAdded.name. --personal shows them." in text


def test_control_characters_of_a_key_do_not_reach_the_terminal() -> None:
    assert printable("é \x1b[2J\na\u202eb [bold]") == "é \\x1b[2J\\na\\u202eb \\[bold]"
