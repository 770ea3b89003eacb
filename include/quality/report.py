"""The report of a check, and the alert on a failure.

The report is one self-contained HTML page, and the same as JSON for programs. The process that launched a check reads its verdict from the
JSON, not from the exit status.
"""

import json
import logging
import re
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from pydantic import SecretStr

from include.files import write_atomically
from include.html_pages import page_templates
from include.quality.check import CheckRequest, CheckResult, FailingKey
from include.webhook import post_alert
from include.words import plural

TEMPLATES = Path(__file__).resolve().parent / "templates"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
URL_PATH = "/reports/quality/"
LOG = logging.getLogger(__name__)
KEYS_IN_ALERT = 20


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
    return environment.get_template("report.html").render(result=result, differs=differs, plural=plural)


def differs(key: FailingKey, field: str) -> bool:
    """Return whether the stored and the replayed value of a field differ."""
    return key.stored.get(field) != key.replayed.get(field)


class Outcome(Enum):
    """The outcome of a check; the value equals `passed` in its JSON."""

    PASSED = True
    FAILED = False
    UNCHECKABLE = None


@dataclass(frozen=True)
class Verdict:
    """A check's outcome, and a one-line summary of it."""

    outcome: Outcome
    summary: str


def verdict_of(home: Path, run_id: str) -> Verdict | None:
    """Return the verdict of a check, or None when it has none."""
    try:
        fields = CheckResult.read(summary_path(home, run_id).read_text(encoding="utf-8"))
        return Verdict(Outcome(fields["passed"]), str(fields["verdict"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def alert(webhook_url: SecretStr, result: CheckResult) -> bool:
    """Alert on a failed check; return False if the webhook did not accept it. Never raises.

    The webhook gets a POST of JSON: text (one line, as chat systems display it), read_model, version, run_id, report,
    expectations (those that failed: store, expectation, failed) and keys (some of those that failed: place, key).
    """
    LOG.error("%s", result.verdict)
    body = {
        "text": f"{result.verdict}. Report: {result.report_url}",
        "read_model": result.request.read_model,
        "version": result.version,
        "run_id": result.request.run_id,
        "report": result.report_url,
        "expectations": [
            {"store": e.store, "expectation": e.expectation, "failed": e.failed}
            for e in result.expectations
            if not e.passed
        ],
        "keys": [{"place": k.place, "key": k.key} for k in result.failing_keys[:KEYS_IN_ALERT]],
    }
    return post_alert(webhook_url, body)
