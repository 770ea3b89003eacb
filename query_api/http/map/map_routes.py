"""The page at `/map/<read model>`: its items on a plain map, moved by the stream of changes. It loads nothing from other hosts."""

from pathlib import Path

from flask import Blueprint, Response, abort, render_template_string

from query_api.http.request_parameters import Areas

FOLDER = Path(__file__).parent
FILES = {"map.js": "text/javascript", "map.css": "text/css"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def map_blueprint(node_name: str, areas: Areas) -> Blueprint:
    """Return the page as a Flask blueprint."""
    blueprint = Blueprint("map", __name__)
    page = (FOLDER / "map.html").read_text(encoding="utf-8")
    files = {name: (FOLDER / name).read_bytes() for name in FILES}

    @blueprint.get("/map/<name>")
    def get_map(name: str) -> Response:
        location = areas.locations.get(name)
        if location is None:
            known = ", ".join(sorted(areas.locations)) or "none"
            abort(404, f"{name} is not a read model with a location. Read models with one: {known}.")
        text = render_template_string(page, node=node_name, name=name, location=location)
        return Response(text, content_type="text/html; charset=utf-8", headers=HEADERS)

    @blueprint.get("/map-files/<name>")
    def get_file(name: str) -> Response:
        if name not in files:
            abort(404)
        return Response(files[name], content_type=f"{FILES[name]}; charset=utf-8", headers=HEADERS)

    return blueprint
