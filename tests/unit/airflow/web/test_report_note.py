"""The note of a quality run: one line for each read model, with its verdict and the link to its report."""

from include.airflow.client import MAX_NOTE_CHARACTERS
from include.airflow.web import verdict_line, with_line
from include.quality.report import Outcome, Verdict

URL = "http://127.0.0.1:5051/reports/quality/x.html"


def test_a_verdict_is_a_line_with_the_report() -> None:
    assert verdict_line("balance", Verdict(Outcome.PASSED, ""), URL) == f"balance passed: [Report]({URL})"
    assert verdict_line("balance", Verdict(Outcome.FAILED, ""), URL) == f"balance **FAILED**: [Report]({URL})"
    assert verdict_line("balance", Verdict(Outcome.UNCHECKABLE, ""), URL) == "balance cannot be checked"


def test_a_later_verdict_on_a_read_model_replaces_the_earlier_one() -> None:
    note = with_line("", "balance", "balance **FAILED**: [Report](a)")
    note = with_line(note, "balance-limit", "balance-limit passed: [Report](b)")
    note = with_line(note, "balance", "balance passed: [Report](c)")

    assert note == "balance-limit passed: [Report](b)\n\nbalance passed: [Report](c)"


def test_a_note_that_is_too_long_loses_its_oldest_lines() -> None:
    note = ""
    for number in range(100):
        note = with_line(note, f"model-{number}", f"model-{number} passed: [Report]({URL})")

    assert len(note) <= MAX_NOTE_CHARACTERS
    assert note.endswith(f"model-99 passed: [Report]({URL})")
