"""Serves reports from files on this machine, of quality checks and of what rebuilds change: a list, and each page."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from flask import Blueprint, Response, abort, render_template_string, send_from_directory

# The file names that include/quality/report.py derives from run ids.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.(html|json|svg)")
LISTED = 200
# A report is self-contained: no scripts, no other hosts.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LIST = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ kind.title }}</title>
<link rel="icon" href="data:,">
<style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
li{overflow-wrap:anywhere}time{opacity:.7}</style>
<h1>{{ kind.title }}</h1>
{% if pages %}<p>Newest first.</p>{% else %}<p>{{ kind.nothing }}: run <code>{{ kind.command }}</code>.</p>{% endif %}
<ul>{% for name, at in pages %}<li><a href="{{ name }}">{{ name[:-5] }}</a> <time>{{ at }}</time>{% endfor %}</ul></html>
"""


@dataclass(frozen=True)
class ReportKind:
    """A kind of reports. name: of their folder, and in their URLs. nothing, command: what is said when there is none."""

    name: str
    title: str
    nothing: str
    command: str


QUALITY = ReportKind("quality", "Quality checks", "No check has run yet", "./foldlake quality")
CHANGES = ReportKind(
    "changes",
    "What rebuilds change",
    "No version has been compared yet",
    "./foldlake rebuild <read model> --dry-run",
)


def reports_blueprint(directory: Path, kind: ReportKind = QUALITY) -> Blueprint:
    """Return the reports of one kind, which are in `directory`, as a Flask blueprint."""
    blueprint = Blueprint(f"{kind.name}-reports", __name__)

    @blueprint.get(f"/reports/{kind.name}/")
    def list_reports() -> Response:
        return _page(render_template_string(LIST, pages=_newest(directory), kind=kind))

    @blueprint.get(f"/reports/{kind.name}/<name>")
    def get_report(name: str) -> Response:
        if not NAME.fullmatch(name):
            abort(404, f"No such report: /reports/{kind.name}/ lists all reports.")
        response = send_from_directory(directory, name, max_age=0)
        response.headers["Content-Security-Policy"] = POLICY
        # In one piece: a file that is sent piece by piece occupies a thread for as long as its client takes to read it.
        response.direct_passthrough = False
        response.get_data()
        return response

    return blueprint


def _newest(directory: Path) -> list[tuple[str, str]]:
    """Return the name and the time of the newest pages."""
    found = []
    for path in directory.glob("*.html"):
        try:
            found.append((path.stat().st_mtime, path.name))
        except FileNotFoundError:
            continue
    return [
        (name, f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC")
        for at, name in sorted(found, reverse=True)[:LISTED]
    ]


def _page(text: str) -> Response:
    return Response(
        text, content_type="text/html; charset=utf-8", headers={"Content-Security-Policy": POLICY}
    )
