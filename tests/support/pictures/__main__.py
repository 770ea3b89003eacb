"""Takes the pictures: changes a rule of the demo in a clone, rightly and then wrongly, and photographs each step; also a map of orders.

The plots need the packages of requirements-analysis.txt.
"""

import argparse
import importlib.util
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from demo.analysts.page import draw
from demo.analysts.questions import QUESTIONS, QUESTIONS_OF_A_RUN, Question
from include.airflow.names import REBUILD_DAG
from include.lake.sql_tables import connect
from include.rebuild.comparison.report import report_url
from include.rebuild.stage import report_id
from include.settings import CHECKOUT
from tests.support.browser.chromium import chromium
from tests.support.pictures.airflow_pages import AirflowPages
from tests.support.pictures.animation import WIDTH, Line, Scene, animation
from tests.support.pictures.stack import LOOKUP, Clone, Lookups, running_clone
from tests.support.repetition import repeated
from tests.support.waiting import wait_until

IMAGES = CHECKOUT / "docs" / "images"
# What can be taken: plots of docs/analysts.md, pictures of the changed rule, the map of docs/orders.md.
PLOTS, RULE, ORDER_MAP = "plots", "rule", "order-map"
PLOTTER = "vl_convert"
MODEL = "balance"
CUSTOMER = "1"
ROLLBACK = ("rollback", MODEL, "--reason", "the bonus is cancelled")
REASON = "1 % bonus on deposits of 100 or more"
FIRST_FOLD = "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END)"
# Forgets that withdrawals are not deposits.
WRONG_FOLD = "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount ELSE amount END + CASE WHEN amount >= 100 THEN round(amount * 0.01, 2) ELSE 0 END)"
RIGHT_FOLD = "sum(CASE WHEN event_type = 'FundsWithdrawn' THEN -amount WHEN amount >= 100 THEN round(amount * 1.01, 2) ELSE amount END)"
TIMEOUT_S = 1800.0
POLL_S = 1.0
LOOKUP_PAUSE_S = 0.02
# Airflow's page polls, and a page's plots are drawn after it has loaded.
SETTLE_S = 3.0


def main() -> None:
    """Take the pictures, all or some."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.pictures", description=__doc__)
    parser.add_argument("--output", type=Path, default=IMAGES, help="the folder of the pictures")
    parser.add_argument(
        "--stack", type=Path, help="a folder with `clone` and `home` of a demo that runs; default: a new one"
    )
    names = (PLOTS, RULE, ORDER_MAP)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="take these pictures only")
    arguments = parser.parse_args()
    if PLOTS in arguments.only and importlib.util.find_spec(PLOTTER) is None:
        parser.error("plots need the packages of requirements-analysis.txt (docs/analysts.md#notebook)")
    with _clone(arguments.stack) as clone:
        take(clone, arguments.output, arguments.only)


@contextmanager
def _clone(folder: Path | None) -> Iterator[Clone]:
    if folder is None:
        with running_clone() as clone:
            yield clone
    else:
        yield Clone(folder / "clone", folder / "home")


def take(clone: Clone, output: Path, only: Sequence[str]) -> None:
    """Write the pictures with these names to a folder."""
    if PLOTS in only:
        # While the lake has the events of the demo only.
        clone.foldlake("compact", f"events/{MODEL}")
        _plot(clone, QUESTIONS, output)
    if RULE in only:
        change_rule(clone, output)
    if PLOTS in only:
        clone.foldlake("quality", MODEL)
        _plot(clone, QUESTIONS_OF_A_RUN, output)
    if ORDER_MAP in only:
        clone.foldlake("demo", "orders")
        with chromium() as browser:
            browser.get(f"{clone.node_url()}/map/order-location")
            _photograph(browser, output / "order-map.png")


def _plot(clone: Clone, questions: Sequence[Question], output: Path) -> None:
    with connect(clone.settings.lake_root) as connection:
        draw(connection, questions, output / "analysts")


def change_rule(clone: Clone, output: Path) -> None:
    """Change the rule, and write each picture of it to a folder."""
    clone.withdraw(range(1, 9), "100.00")
    lookups = Lookups(clone, range(1, 500))
    with (
        chromium(1400, 900) as browser,
        chromium(WIDTH, 1000) as narrow,
        repeated(lookups.look_up, LOOKUP_PAUSE_S),
    ):
        airflow = AirflowPages(browser, clone.settings)
        new = clone.add_fold(2, RIGHT_FOLD)
        airflow.open_form(REASON)
        _photograph(browser, output / "rebuild-form.png")
        before = clone.balance(CUSTOMER)
        right = _rebuild(clone, {"approve": True})
        report = _photograph_report(clone, narrow, 2, output / "scene-report.png")
        airflow.open_approval(right)
        airflow.show_approve_button()
        approval = _photograph(browser, output / "scene-approval.png")
        airflow.approve()
        _wait_for_end(clone, right)
        after = clone.balance(CUSTOMER)
        airflow.open_run(right)
        _photograph(browser, output / "rebuild-run.png")
        printed = clone.foldlake(*ROLLBACK).splitlines()
        restored = clone.balance(CUSTOMER)
        browser.get(clone.node_url())
        _photograph(browser, output / "status-page.png")
        clone.add_fold(3, WRONG_FOLD)
        wrong = _rebuild(clone, {"approve": False, "max_changed_percent": 1.0})
        airflow.open_approval(wrong)
        _photograph(browser, output / "rebuild-thresholds.png")
        _photograph_report(clone, narrow, 3, output / "rebuild-changes.png")
        clone.airflow.answer(REBUILD_DAG, wrong, "approve", "Reject")
        _wait_for_end(clone, wrong)
        clone.foldlake("quality", MODEL)
        narrow.get(f"{clone.node_url()}/reports/quality/")
        narrow.find_element(By.CSS_SELECTOR, "td a").click()
        _photograph(narrow, output / "quality-report.png")
    asked = f"$ curl '{LOOKUP}?customerId={CUSTOMER}'"
    scenes = [
        Scene(
            "Change the rule",
            [
                Line("include/read_models/balance/model.py", "note"),
                Line(""),
                Line(" folds={"),
                *_diff(new),
                Line(" },"),
            ],
        ),
        Scene("See what changes", report),
        Scene("Approve", approval),
        Scene(
            "Lookups switch",
            [
                Line(asked),
                *_shown(before),
                Line(""),
                Line(asked),
                *_shown(after),
                Line(""),
                Line(f"{lookups.answered:,} lookups on two nodes meanwhile, {lookups.failed} failed", "note"),
            ],
        ),
        Scene(
            "Roll back",
            [
                Line(f'$ ./foldlake {" ".join(ROLLBACK[:3])} "{ROLLBACK[3]}"'),
                *(Line(line) for line in printed if " running " not in line and "started" not in line),
                Line(""),
                Line(asked),
                *_shown(restored),
            ],
        ),
    ]
    (output / "changed-rule.svg").write_text(animation(scenes), encoding="utf-8")
    report.unlink()
    approval.unlink()


def _diff(new: str) -> list[Line]:
    return [
        Line(f'     1: {{"amount": "{FIRST_FOLD}"}},'),
        *(Line(f"+    {part}", "added") for part in _wrapped(new)),
    ]


def _wrapped(text: str, width: int = 90) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) > width:
            lines.append("   ")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return lines


def _shown(answer: httpx.Response) -> list[Line]:
    version = answer.headers["foldlake-version"]
    return [Line(f"foldlake-version: {version}", "added"), Line(answer.text.strip(), "strong")]


def _rebuild(clone: Clone, conf: dict[str, object]) -> str:
    """Start a rebuild with the newest fold, and wait until a person is needed; return the run."""
    run_id = clone.airflow.trigger(REBUILD_DAG, {"read_model": MODEL, "reason": REASON, **conf})
    wait_until(lambda: _approval(clone, run_id) == "awaiting_input", "a person is needed", TIMEOUT_S, POLL_S)
    return run_id


def _approval(clone: Clone, run_id: str) -> str | None:
    assert clone.airflow.run_state(REBUILD_DAG, run_id) != "failed", f"{run_id} has failed"
    return next(task.state for task in clone.airflow.tasks(REBUILD_DAG, run_id) if task.task_id == "approve")


def _wait_for_end(clone: Clone, run_id: str) -> None:
    wait_until(
        lambda: clone.airflow.run_state(REBUILD_DAG, run_id) in ("success", "failed"),
        "the run ends",
        TIMEOUT_S,
        POLL_S,
    )


def _photograph_report(clone: Clone, browser: Chrome, version: int, path: Path) -> Path:
    browser.get(report_url(clone.node_url(), report_id(MODEL, version)))
    return _photograph(browser, path)


def _photograph(browser: Chrome, path: Path) -> Path:
    time.sleep(SETTLE_S)
    browser.save_screenshot(str(path))
    return path


if __name__ == "__main__":
    main()
