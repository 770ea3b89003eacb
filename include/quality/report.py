"""The report of a check: one self-contained HTML page, and the same as JSON for programs."""

import json
import re
from dataclasses import asdict
from pathlib import Path

from include.files import write_atomically
from include.html_pages import page_templates
from include.quality.check import CheckRequest, CheckResult, FailingKey

TEMPLATES = Path(__file__).resolve().parent / "templates"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
URL_PATH = "/reports/quality/"


def reports_directory(home: Path) -> Path:
    """Return the directory of the reports."""
    return home / "reports" / "quality"


def report_path(home: Path, run_id: str) -> Path:
    """Return the path of a run's HTML page; the run's JSON is beside it."""
    return reports_directory(home) / f"{file_stem(run_id)}.html"


def summary_path(home: Path, run_id: str) -> Path:
    """Return the path of a run's JSON."""
    return report_path(home, run_id).with_suffix(".json")


def report_url(base_url: str, run_id: str) -> str:
    """Return the URL under which a query node serves the page."""
    return f"{base_url.rstrip('/')}{URL_PATH}{file_stem(run_id)}.html"


def file_stem(run_id: str) -> str:
    """Return a run id as a file name: Airflow's run ids contain colons and plus signs."""
    return UNSAFE.sub("-", run_id).strip(".-") or "run"


def remove(home: Path, run_id: str) -> None:
    """Remove the files of an earlier try of the same run, so that its verdict is not mistaken for this try's."""
    report_path(home, run_id).unlink(missing_ok=True)
    summary_path(home, run_id).unlink(missing_ok=True)


def write_page(home: Path, result: CheckResult) -> Path:
    """Write the page atomically and return its path."""
    path = report_path(home, result.request.run_id)
    write_atomically(path, html(result))
    return path


def write_summary(home: Path, result: CheckResult) -> None:
    """Write the JSON, which is the verdict: last, since a check with a verdict is not repeated."""
    write_atomically(summary_path(home, result.request.run_id), result.to_json())


def write_uncheckable(home: Path, request: CheckRequest, reason: str, duration_s: float) -> None:
    """Write the JSON of a read model that cannot be checked; it has no page."""
    summary = {"request": asdict(request), "passed": None, "verdict": reason, "duration_s": duration_s}
    write_atomically(summary_path(home, request.run_id), json.dumps(summary, indent=1))


def html(result: CheckResult) -> str:
    """Return the page."""
    environment = page_templates(TEMPLATES)
    return environment.get_template("report.html").render(result=result, differs=differs)


def differs(key: FailingKey, field: str) -> bool:
    """Return whether the stored and the replayed value of a field differ."""
    return key.stored.get(field) != key.replayed.get(field)
