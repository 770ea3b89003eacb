"""The report is one self-contained page that names what failed, where, and the next step."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from include.quality import report
from include.quality.check import CheckRequest, CheckResult, ExpectationResult, FailingKey, Mode, StoreName
from include.quality.report import verdict_of

REQUEST = CheckRequest(
    "balance", (StoreName.LAKE, StoreName.NODES), Mode.FULL, "manual__2026-01-01T00:00:00+00:00"
)
PASSED = CheckResult(
    request=REQUEST,
    version=3,
    fold_revision=2,
    started_at="2026-01-01T00:00:00+00:00",
    duration_s=12.3,
    events=2_000_000,
    keys=100_000,
    records=300_000,
    expectations=(ExpectationResult(StoreName.LAKE, "no key is missing", 100_000, 0),),
    failing_keys=(),
    failing_keys_total=0,
)
FAILED = replace(
    PASSED,
    expectations=(
        ExpectationResult(
            StoreName.LAKE,
            "amount equals the replayed value",
            100_000,
            1,
            sample=({"place": "lake", "key": "7"},),
        ),
    ),
    failing_keys=(
        FailingKey(
            StoreName.LAKE,
            "lake",
            "<script>alert(7)</script>",
            ("amount equals the replayed value",),
            {"amount": "15.01", "event_count": "5"},
            {"amount": "15.00", "event_count": "5"},
        ),
        FailingKey(StoreName.LAKE, "lake", "gone", ("no key is missing",), {}, {"amount": "3.00"}),
    ),
    failing_keys_total=2,
    findings=("not complete: nodes is behind by 5 events",),
)


class Page(HTMLParser):
    """The tags of a page, and every URL in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag."""
        self.tags.append(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in {"href", "src", "action", "srcset"}
        ]


@pytest.mark.parametrize("result", [PASSED, FAILED], ids=["passed", "failed"])
def test_page_loads_nothing_from_other_hosts_and_runs_no_script(result: CheckResult) -> None:
    text = report.html(result)
    page = Page(text)

    assert page.addresses == ["data:,"]
    assert "//" not in text.replace("127.0.0.1", "")
    assert "@import" not in text
    assert "url(" not in text
    assert "script" not in page.tags


def test_page_shows_both_values_of_a_failing_key() -> None:
    text = report.html(FAILED)

    assert "Failed." in text
    assert "15.01" in text
    assert "15.00" in text
    assert "not complete: nodes is behind by 5 events" in text
    assert "What to do next" in text


def test_page_of_a_check_that_passed_has_no_failing_keys() -> None:
    text = report.html(PASSED)

    assert "Passed." in text
    assert "2,000,000 events replayed" in text
    assert "Failing keys" not in text


@pytest.mark.parametrize(
    ("mode", "keys", "records", "text"),
    [
        (Mode.FULL, 911, 2_733, "911 keys, 3 copies each"),
        (Mode.FULL, 911, 911, "911 keys, 1 copy each"),
        # One copy is missing, or has a key that no event has.
        (Mode.FULL, 911, 2_732, "911 keys, 2,732 records"),
        (Mode.FULL, 0, 0, "0 keys, 0 records"),
        (Mode.SAMPLE, 911, 2_733, "a sample of 911 of 2,469 keys (37%), 3 copies each"),
        (Mode.INCREMENTAL, 1, 3, "1 key with new events, 3 copies each"),
    ],
)
def test_keys_copies_and_records_are_kept_apart(mode: Mode, keys: int, records: int, text: str) -> None:
    all_keys = 0 if mode is Mode.FULL else 2_469
    result = replace(
        PASSED, request=replace(REQUEST, mode=mode), keys=keys, records=records, all_keys=all_keys
    )

    assert result.compared == text
    assert f"{text}, 2,000,000 events replayed" in result.verdict
    assert f"none of these keys is missing: {text}." in " ".join(report.html(result).split())


@pytest.mark.parametrize(("total", "more"), [(2, ""), (4, ", and others")])
@pytest.mark.parametrize("result", [PASSED, FAILED], ids=["passed", "failed"])
def test_keys_without_a_record_are_named(result: CheckResult, total: int, more: str) -> None:
    keys = tuple(f"c{number} (field total: a sum is out of range)" for number in range(min(total, 3)))
    result = replace(result, unwritten=keys, unwritten_total=total)

    line = f"{total} keys without a record, because the state cannot be written: {', '.join(keys)}{more}"
    assert line in result.verdict
    assert line in report.html(result)


def test_a_key_is_escaped() -> None:
    assert "&lt;script&gt;alert(7)&lt;/script&gt;" in report.html(FAILED)


@pytest.mark.parametrize("run_id", ["../../etc/passwd", "a/b", "..", "", "manual__2026-01-01T00:00:00+00:00"])
def test_a_report_stays_in_its_folder(tmp_path: Path, run_id: str) -> None:
    path = report.report_path(tmp_path, run_id)

    assert path.parent == tmp_path / "reports" / "quality"
    assert path.stem.strip(".")


def test_the_page_is_written_first_and_the_verdict_beside_it_last(tmp_path: Path) -> None:
    path = report.write_page(tmp_path, FAILED)

    assert verdict_of(tmp_path, REQUEST.run_id) is None
    assert path.read_text(encoding="utf-8") == report.html(FAILED)
    report.write_summary(tmp_path, FAILED)
    said = CheckResult.read(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert (said["passed"], said["verdict"]) == (False, FAILED.verdict)
    report.remove(tmp_path, REQUEST.run_id)
    assert list(path.parent.iterdir()) == []
