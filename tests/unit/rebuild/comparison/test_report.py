"""The page shows everything that a person needs to decide, loads nothing, and shows keys as they are."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import Bin
from include.rebuild.comparison.histograms import histogram_svg
from tests.support.lake.comparison_example import EXAMPLE

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page() -> str:
    return report.html(EXAMPLE)


@pytest.mark.parametrize(
    "text",
    [
        "balance: v2 compared with v1, which is live",
        "400 of 4,003 keys differ (9.99 %)",
        "395 changed, 3 new, 2 gone",
        "Sum of amount: 42,840,000.00 → 44,660,000.00 (+1,820,000.00, +4.25 %)",
        "1,820,100.00",
        "Only v2 has note",
        "The versions fold different topics.",
        "8,000.00 → 80.50",
        '<span class="removed">-def funds():</span>',
        '<span class="added">+amount = sum(amount + bonus)</span>',
        "Samples of new keys",
        "/reports/quality/rebuild-balance-v2.html",
        "1 % bonus",
    ],
)
def test_the_page_states(page: str, text: str) -> None:
    assert text in page


def test_a_key_is_shown_as_it_is_and_leads_to_its_explanation(page: str) -> None:
    assert "you &amp; &lt;me&gt;" in page
    assert "<me>" not in page
    assert 'href="/explain?readModel=balance&amp;key=you+%26+%3Cme%3E"' in page
    assert "./foldlake explain balance &#39;you &amp; &lt;me&gt;&#39; --version 2" in page


def test_text_that_looks_like_a_number_is_not_formatted(page: str) -> None:
    assert "0012" in page


def test_the_page_says_which_engine_has_compared_and_why() -> None:
    found = report.html(replace(EXAMPLE, engine="spark", engine_reason="a fold is a function"))

    assert "with spark: a fold is a function</dd>" in found


def test_the_page_loads_nothing(page: str) -> None:
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "<script" not in page


def test_a_first_version_and_one_without_numbers_have_pages() -> None:
    first = report.html(
        replace(EXAMPLE, before=None, folds=EXAMPLE.folds[1:], fields={}, measure="event_count")
    )
    assert "v2, compared with nothing" in first
    assert "<svg" not in first


def test_a_page_without_changes_says_so() -> None:
    same = replace(EXAMPLE.fields["amount"], after="42840000.00", moved="0", bins=())
    none = replace(EXAMPLE, changed=0, added=0, gone=0, largest=(), samples=(), fields={"amount": same})
    page = report.html(none)
    assert "0 of 4,001 keys differ (0 %)" in page
    assert "42,840,000.00, unchanged" in page


def test_the_picture_has_a_bar_with_its_number_for_each_bin() -> None:
    bins = EXAMPLE.fields["amount"].bins
    picture = ET.fromstring(histogram_svg(bins, "changes <of> amount", is_file=True))  # noqa: S314 - written above
    bars = [r for r in picture.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert [bar.findtext(f"{SVG}title") for bar in bars] == [
        "-50 to -20: 1 key",
        "-20 to -10: 0 keys",
        "1,000 to 2,000: 300 keys",
    ]
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[0] > 0
    assert heights[1] == 0
    assert heights[2] == max(heights)
    assert bars[0].attrib["fill"] != bars[2].attrib["fill"]
    assert picture.findtext(f"{SVG}title") == "changes <of> amount"


def test_between_decreases_and_increases_is_zero() -> None:
    bins = (Bin("-10", "-1", 3), Bin("-1", "-0.1", 2), Bin("0.1", "1", 2))
    picture = ET.fromstring(histogram_svg(bins, "x"))  # noqa: S314
    bottom = max(float(text.attrib["y"]) for text in picture.iter(f"{SVG}text")) - 32
    labels = [text.text for text in picture.iter(f"{SVG}text") if float(text.attrib["y"]) > bottom]
    assert labels == ["-10", "-1", "0", "+1", "change of a key"]


def test_many_bins_have_labels_that_do_not_overlap() -> None:
    bins = [Bin(str(n), str(n + 1), n) for n in range(1, 80)]
    picture = ET.fromstring(histogram_svg(bins, "x"))  # noqa: S314
    at = sorted(
        float(text.attrib["x"]) for text in picture.iter(f"{SVG}text") if (text.text or "").startswith("+")
    )
    assert min(b - a for a, b in pairwise(at)) > 40


def test_without_bins_there_is_no_picture() -> None:
    assert histogram_svg((), "x") == ""


def test_files_are_written_and_read(tmp_path: Path) -> None:
    report.write(tmp_path, EXAMPLE)
    assert report.read(tmp_path, EXAMPLE.run_id) == EXAMPLE
    names = sorted(path.name for path in report.comparisons_directory(tmp_path).iterdir())
    assert names == ["rebuild-balance-v2.html", "rebuild-balance-v2.json", "rebuild-balance-v2.svg"]
    assert json.loads(report.comparison_path(tmp_path, EXAMPLE.run_id).read_text())["changed"] == 395
    # Repeated, without a change: the picture of the first try is gone.
    report.write(tmp_path, replace(EXAMPLE, fields={}))
    assert not report.comparison_path(tmp_path, EXAMPLE.run_id).with_suffix(".svg").exists()


def test_what_is_no_comparison_is_none(tmp_path: Path) -> None:
    assert report.read(tmp_path, "nothing") is None
    report.write(tmp_path, EXAMPLE)
    report.comparison_path(tmp_path, EXAMPLE.run_id).write_text("{")
    assert report.read(tmp_path, EXAMPLE.run_id) is None


def test_the_urls_are_those_that_a_node_serves() -> None:
    assert report.report_url("http://node/", "a run") == "http://node/reports/changes/a-run.html"
    assert report.picture_url("http://node", "a run") == "http://node/reports/changes/a-run.svg"
