"""The headers of a node's pages, the static files that belong to them, and errors as pages. Nothing is loaded from other hosts.

A browser that asks for HTML gets an error as a page instead of the problem's JSON, with the same status and headers.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, request
from jinja2 import Template
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from include.html_pages import page_templates
from query_api.http.answers import Reply
from query_api.http.problems import MEDIA_TYPE, TYPE_PREFIX

FOLDER = Path(__file__).parent
TYPES = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
HTML = "text/html; charset=utf-8"
PAGE_STYLE = {"page.css": FOLDER / "page.css"}
# A browser asks each time whether a file has changed, so that a page never has the script of an earlier release.
CACHE_CONTROL = "no-cache"


def page_headers(frame_ancestors: Iterable[str] = ()) -> dict[str, str]:
    """Return the headers of a page; `frame_ancestors` are the origins whose pages may contain it."""
    ancestors = " ".join(frame_ancestors) or "'none'"
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
            f"form-action 'self'; frame-ancestors {ancestors}"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": CACHE_CONTROL,
    }


def origins_of(base_url: str) -> tuple[str, ...]:
    """Return the origin of a URL; of one on loopback, also those under the other names of the machine."""
    parts = urlsplit(base_url)
    names = {parts.hostname or ""}
    if names & {"127.0.0.1", "localhost"}:
        names |= {"127.0.0.1", "localhost"}
    port = f":{parts.port}" if parts.port else ""
    return tuple(f"{parts.scheme}://{name}{port}" for name in sorted(names) if name)


def files_blueprint(name: str, path: str, files: dict[str, Path]) -> Blueprint:
    """Return static files, by the name in their URL below `path`, as a Flask blueprint. They are read once."""
    blueprint = Blueprint(name, __name__)
    contents = {file: source.read_bytes() for file, source in files.items()}
    tags = {file: hashlib.sha256(content).hexdigest()[:16] for file, content in contents.items()}

    @blueprint.get(f"{path}/<file>")
    def get_file(file: str) -> Response:
        if file not in contents:
            abort(404)
        response = Response(contents[file], content_type=f"{TYPES[Path(file).suffix]}; charset=utf-8")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = CACHE_CONTROL
        response.set_etag(tags[file])
        response.make_conditional(request)
        return response

    return blueprint


HTML_TYPE = "text/html"
CONTENT_TYPE = "content-type"
# Browsers send some hundred. To sort 15,000 types takes a second.
MAX_ACCEPT_CHARACTERS = 2000
# Members that the page shows in its own way.
SHOWN = frozenset({"type", "title", "status", "detail", "page", "advice", "reasons", "errors"})


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
