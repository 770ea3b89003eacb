"""The page at `/`: what there is to ask."""

from flask import Blueprint, Response

PAGE = """<!doctype html><meta charset="utf-8"><title>Foldlake query node {node}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}}code{{background:#eee;padding:.1em .3em}}</style>
<h1>Foldlake query node {node}</h1>
<ul>
<li><code>GET</code> <a href="/api/customers.getBalance?customerId=1">/api/customers.getBalance?customerId=1</a>
<li><code>GET</code> <a href="/api/read-models">/api/read-models</a>
<li><code>GET</code> <a href="/api/read-models/balance/records/1">/api/read-models/balance/records/1</a>
<li><code>GET</code> <a href="/api/partitions">/api/partitions</a>
<li><code>GET</code> <a href="/reports/quality/">/reports/quality/</a>
<li><code>GET</code> <a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>, <a href="/metrics">/metrics</a>
<li><code>POST</code> /api/balance.addFunds, /api/balance.withdrawFunds
<code>{{"customerId": "1", "amount": "5.00"}}</code>
</ul>
<p>All of it, with answers: docs/api.md.
"""


def index_blueprint(node_name: str) -> Blueprint:
    """Return the page as part of a Flask application."""
    blueprint = Blueprint("index", __name__)

    @blueprint.get("/")
    def index() -> Response:
        return Response(PAGE.format(node=node_name), content_type="text/html; charset=utf-8")

    return blueprint
