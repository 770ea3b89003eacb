"""Serves reports from files on this machine, of quality checks and version diffs: a list, and each page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, Response, abort, render_template_string, send_from_directory

from query_api.http.report_index import listed_reports, newest_pages

# The file names that include/quality/report.py derives from run ids.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.(html|json|svg)")
# A report is self-contained: no scripts, no other hosts.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ title }}</title>
<link rel="icon" href="data:,">
"""
CHECKS = """<style>:root{color-scheme:light dark;--good:#1a7f37;--bad:#cf222e}body{font:16px/1.6 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-top:1px solid #8884}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.passed{color:var(--good)}.FAILED{color:var(--bad);font-weight:600}
td:last-child{overflow-wrap:anywhere}</style>
<p><a href="/">Status</a></p>
<h1>{{ title }}</h1>
{% if reports %}<p>Newest first. A check that was skipped, because nothing was new or the last one took long, has no report.</p>
<div class="wide" tabindex="0"><table>
<tr><th scope="col">verdict<th scope="col">read model<th scope="col">mode<th scope="col">stores<th scope="col" class="number">ended (UTC)<th scope="col" class="number">took<th scope="col">report
{% for one in reports %}<tr><td class="{{ one.verdict }}">{{ one.verdict or "unknown" }}<td>{{ one.model }}<td>{{ one.mode }}<td>{{ one.stores }}
<td class="number"><time>{{ one.ended_at }}</time><td class="number">{% if one.duration_s is not none %}{{ "%.1f" | format(one.duration_s) }} s{% endif %}
<td>{% if one.page %}<a href="{{ one.page }}">{{ one.page[:-5] }}</a>{% endif %}
{% endfor %}</table></div>
{% else %}<p>No check has run yet: run <code>./foldlake quality</code>.</p>{% endif %}</html>
"""
COMPARISONS = """<style>:root{color-scheme:light dark}body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
li{overflow-wrap:anywhere}time{opacity:.7}</style>
<h1>{{ title }}</h1>
{% if reports %}<p>Newest first.</p>{% else %}<p>No version has been compared yet: run <code>./foldlake rebuild &lt;read model&gt; --dry-run</code>.</p>{% endif %}
<ul>{% for name, at in reports %}<li><a href="{{ name }}">{{ name[:-5] }}</a> <time>{{ at }}</time>{% endfor %}</ul></html>
"""


@dataclass(frozen=True)
class ReportKind:
    """A kind of reports. name: of their folder, and in their URLs. body: the template of their list. listed: what is in it, from their folder."""

    name: str
    title: str
    body: str
    listed: Callable[[Path], Sequence[object]]


QUALITY = ReportKind("quality", "Quality checks", CHECKS, listed_reports)
CHANGES = ReportKind("changes", "Version diffs", COMPARISONS, newest_pages)


def reports_blueprint(directory: Path, kind: ReportKind = QUALITY) -> Blueprint:
    """Return the reports of one kind, which are in `directory`, as a Flask blueprint."""
    blueprint = Blueprint(f"{kind.name}-reports", __name__)

    @blueprint.get(f"/reports/{kind.name}/")
    def list_reports() -> Response:
        return _page(
            render_template_string(HEAD + kind.body, title=kind.title, reports=kind.listed(directory))
        )

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


def _page(text: str) -> Response:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(text, content_type="text/html; charset=utf-8", headers=headers)
