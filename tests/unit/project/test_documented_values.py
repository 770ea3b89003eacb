"""Values, times and code in the documentation are those of the code."""

import re
from hashlib import sha256

import pytest

from include.declarations.kinds.endpoint import MAX_RECORDS
from include.rebuild import promotion
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.stream_config import stream_task_slots
from include.stream import folded_offsets
from spark_jobs.folding.decode import Reason

README = CHECKOUT / "README.md"
PAGES = [
    README,
    *sorted(page for folder in ("docs", "docs/how-to") for page in (CHECKOUT / folder).glob("*.md")),
]
IMAGES = CHECKOUT / "docs" / "images"
DEFAULTS = Settings.of()
# `FOLDLAKE_NODE_MAX_AGE_S` (60 s)
VALUE = re.compile(r"`(FOLDLAKE_[A-Z0-9_]+)` \(([\d.,]+)(?: (s|minutes))?\)")
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBERS = {5: "five", 15: "fifteen"}
COMPACTION_MIN = NUMBERS[round(DEFAULTS.lake.compaction_interval_s / 60)]
COMMIT_S = DEFAULTS.stream.real_time_interval_s
DAYS = {name: round(hours / 24) for name, hours in DEFAULTS.retention if name.endswith("_h")}
SENTENCES = {
    "README.md": [f"updates the Delta tables every {COMPACTION_MIN} minutes"],
    "docs/api.md": [f"ordered by time, at most {MAX_RECORDS}."],
    "docs/architecture.md": [f"folds up to {COMMIT_S} s of events again"],
    "docs/lake.md": [f"brings it up to date every {COMPACTION_MIN} minutes"],
    "docs/operations.md": [
        f"is reported {folded_offsets.COMMIT_S:.0f} s after the commit that it should have made",
        f"for {DAYS['airflow_h']} days (`FOLDLAKE_RETENTION_AIRFLOW_H`)",
        f"for {DAYS['reports_h']} days (`FOLDLAKE_RETENTION_REPORTS_H`)",
    ],
    "docs/how-to/sizing.md": [f"(1 + 2) * 8 + 4 = {stream_task_slots(DEFAULTS)}."],
    "docs/rebuild.md": [
        f"The gate waits for {promotion.GATE_TIMEOUT_S:.0f} seconds ({promotion.TOPIC_GATE_TIMEOUT_S:.0f} in a",
    ],
}


def stated_values() -> set[tuple[str, str, float]]:
    """Return page, setting and value, in the setting's unit, wherever a page has the value in brackets behind the setting."""
    return {
        (page.name, name, float(number.replace(",", "")) * (60 if unit == "minutes" else 1))
        for page in PAGES
        for name, number, unit in VALUE.findall(page.read_text(encoding="utf-8"))
    }


def test_a_value_behind_a_setting_is_its_default() -> None:
    defaults = settings_environment(DEFAULTS)
    stated = stated_values()

    assert len(stated) > 5
    assert [(page, name) for page, name, value in stated if float(defaults[name]) != value] == []


@pytest.mark.parametrize(
    ("page", "sentence"), [(page, sentence) for page, found in SENTENCES.items() for sentence in found]
)
def test_a_page_states_the_value_of_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join((CHECKOUT / page).read_text(encoding="utf-8").split())


def test_every_reason_of_a_dead_letter_has_a_remedy() -> None:
    page = (CHECKOUT / "docs" / "how-to" / "dead-letters.md").read_text(encoding="utf-8")
    listed = {
        name
        for cell in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }

    assert listed == set(Reason)


def test_the_rule_in_the_readme_is_that_of_its_module() -> None:
    rule = CODE.findall(README.read_text(encoding="utf-8"))[0]

    assert rule in (CHECKOUT / "include" / "read_models" / "balance" / "model.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("number", "module"),
    [
        (0, "tests/support/read_models_with_kind/distinct.py"),
        (1, "tests/unit/query_api/http/requests/test_declared_endpoints.py"),
        (2, "query_api/store/lmdb/__init__.py"),
    ],
)
def test_the_code_of_contributing_is_that_of_a_tested_module(number: int, module: str) -> None:
    block = CODE.findall((CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8"))[number]
    lines = {line.strip() for line in (CHECKOUT / module).read_text(encoding="utf-8").splitlines()}

    # The page leaves out templates, docstrings and the bodies of methods.
    assert [
        line for one in block.splitlines() if (line := one.strip().removesuffix(" ...")) not in lines | {""}
    ] == []


def test_every_picture_is_shown_and_stored_once() -> None:
    pictures = sorted(IMAGES.glob("*.png"))
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert [picture.name for picture in pictures if f"images/{picture.name})" not in shown] == []
    assert len({sha256(picture.read_bytes()).digest() for picture in pictures}) == len(pictures)
