"""Errors as pages for people: a browser that asks for HTML gets one instead of the problem's JSON, with the same status and headers."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from include.html_pages import page_templates
from query_api.http.pages.page_files import HTML, page_headers
from query_api.http.problems import MEDIA_TYPE, TYPE_PREFIX
from query_api.http.reply import Reply

HTML_TYPE = "text/html"
CONTENT_TYPE = "content-type"
# Browsers send some hundred. To sort 15,000 types takes a second.
MAX_ACCEPT_CHARACTERS = 2000
# Members that the page shows in its own way.
SHOWN = frozenset({"type", "title", "status", "detail", "advice", "reasons", "errors"})


def wants_page(accept: str) -> bool:
    """Whether a client prefers HTML to JSON, by its header Accept. Programs that accept anything get JSON."""
    if HTML_TYPE not in accept or len(accept) > MAX_ACCEPT_CHARACTERS:
        return False
    best = parse_accept_header(accept, MIMEAccept).best_match((MEDIA_TYPE, "application/json", HTML_TYPE))
    return best == HTML_TYPE


def for_client(reply: Reply, accept: str, path: str) -> Reply:
    """Return a problem as a page if the client wants one; any other reply as it is. `path` is that of the request."""
    status, headers, body = reply
    is_problem = any(name.lower() == CONTENT_TYPE and value.startswith(MEDIA_TYPE) for name, value in headers)
    if not is_problem:
        return reply
    vary = ("Vary", "Accept")
    if not wants_page(accept):
        return status, [*headers, vary], body
    own = page_headers()
    replaced = {CONTENT_TYPE, "content-length", *(name.lower() for name in own)}
    kept = [(name, value) for name, value in headers if name.lower() not in replaced]
    page = error_page(json.loads(body), path).encode()
    return status, [*kept, ("Content-Type", HTML), vary, *own.items()], page


def error_page(problem: dict[str, Any], path: str) -> str:
    """Return the page of a problem."""
    further = {name: value for name, value in problem.items() if name not in SHOWN}
    slug = str(problem.get("type", "")).removeprefix(TYPE_PREFIX)
    return _template().render(problem=problem, slug=slug, path=path, further=further)


@cache
def _template() -> Template:
    return page_templates(Path(__file__).parent).get_template("error.html")
