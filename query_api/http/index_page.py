"""The page at `/`: lists the endpoints, with an example of each lookup and command."""

import json
from collections.abc import Sequence

from flask import Blueprint, Response, render_template_string

from include.declarations.api import ReadModelApi

PAGE = """<!doctype html><meta charset="utf-8"><title>Foldlake query node {{ node }}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}code{background:#eee;padding:.1em .3em}</style>
<h1>Foldlake query node {{ node }}</h1>
{% macro link(path) %}<code>GET</code> <a href="{{ path }}">{{ path }}</a>{% endmacro %}
{% for api in apis %}
<h2>{{ api.model.name }}</h2>
<ul>
{% for lookup in api.lookups %}
<li>{{ link(lookup.path ~ "?" ~ lookup.parameter ~ "=" ~ lookup.example | urlencode) }}
{% endfor %}
{% if api.lookups %}
<li>{{ link("/api/read-models/" ~ api.model.name ~ "/records/" ~ api.lookups[0].example | urlencode) }}
{% endif %}
<li>{{ link("/api/read-models/" ~ api.model.name ~ "/records?partition=0") }}
<li>{{ link("/api/read-models/" ~ api.model.name ~ "/changes") }}
{% if api.location %}
<li>{{ link("/map/" ~ api.model.name) }}
{% endif %}
{% for command in api.commands %}
<li><code>POST</code> {{ command.path }}{% if command.example %} <code>{{ to_json(command.example) }}</code>{% endif %}

{% endfor %}
</ul>
{% endfor %}
<h2>The node</h2>
<ul>
<li>{{ link("/api/read-models") }}
<li>{{ link("/api/partitions") }}
<li>{{ link("/reports/quality/") }}, <a href="/reports/changes/">/reports/changes/</a>
<li>{{ link("/explain") }}
<li>{{ link("/healthz") }}, <a href="/readyz">/readyz</a>, <a href="/metrics">/metrics</a>
</ul>
<p>The whole API, with example responses: docs/api.md.
"""


def index_blueprint(node_name: str, apis: Sequence[ReadModelApi]) -> Blueprint:
    """Return the page as a Flask blueprint."""
    blueprint = Blueprint("index", __name__)

    @blueprint.get("/")
    def index() -> Response:
        page = render_template_string(PAGE, node=node_name, apis=apis, to_json=json.dumps)
        return Response(page, content_type="text/html; charset=utf-8")

    return blueprint
