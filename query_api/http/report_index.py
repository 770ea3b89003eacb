"""The list of the quality checks' reports, newest first, from the pages and the JSON beside each."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from include.quality.check import CheckResult

LISTED = 200


@dataclass(frozen=True)
class ListedReport:
    """A report: its page, if it has one, when the check ended, and what of it. verdict: passed, FAILED, or not checked.

    model: with the version; empty, as all further fields, if the JSON is missing, or of another release.
    """

    page: str
    ended_at: str
    verdict: str = ""
    model: str = ""
    mode: str = ""
    stores: str = ""
    duration_s: float | None = None


def listed_reports(directory: Path) -> list[ListedReport]:
    """Return the newest reports. A read model that cannot be checked has no page."""
    found: dict[str, tuple[float, bool]] = {}
    for suffix in (".json", ".html"):
        for path in directory.glob(f"*{suffix}"):
            try:
                found[path.stem] = (path.stat().st_mtime, suffix == ".html")
            except FileNotFoundError:
                continue
    newest = sorted(found.items(), key=lambda one: one[1], reverse=True)[:LISTED]
    return [
        _listed(directory / f"{stem}.json", f"{stem}.html" if has_page else "", ended_s)
        for stem, (ended_s, has_page) in newest
    ]


def newest_pages(directory: Path) -> list[tuple[str, str]]:
    """Return the newest pages, each with the time at which it was written."""
    written: dict[str, float] = {}
    for page in directory.glob("*.html"):
        with suppress(FileNotFoundError):
            written[page.name] = page.stat().st_mtime
    newest = sorted(written.items(), key=lambda one: one[1], reverse=True)[:LISTED]
    return [(name, f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC") for name, at_s in newest]


def _listed(summary: Path, page: str, ended_s: float) -> ListedReport:
    ended_at = f"{datetime.fromtimestamp(ended_s, UTC):%Y-%m-%d %H:%M:%S}"
    try:
        fields = CheckResult.read(summary.read_text(encoding="utf-8"))
        request = fields["request"]
        version = fields.get("version", request.get("version"))
        return ListedReport(
            page,
            ended_at,
            {True: "passed", False: "FAILED"}.get(fields["passed"], f"not checked: {fields['verdict']}"),
            request["read_model"] + (f" v{version}" if version else ""),
            "all keys, not incremental" if fields.get("full_check_reason") else str(request["mode"]),
            ", ".join(request["stores"]),
            float(fields["duration_s"]),
        )
    except (OSError, json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return ListedReport(page, ended_at)
