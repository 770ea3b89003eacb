"""The headers of a node's pages, and the static files that belong to them. Nothing is loaded from other hosts."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, request

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
