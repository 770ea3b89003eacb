"""What each request needs, by the endpoint that Flask routes it to, so that no spelling of a path leads past the decision.

An endpoint that is not listed needs `read` on the node as a whole, or `admin` if the request may change something: a new page is
protected without a change here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flask import Flask
from werkzeug.exceptions import HTTPException

from include.access.caller import Need, Scope
from include.declarations.api import Lookup, ReadModelApi
from include.declarations.catalog import Catalog
from query_api.http.explain.explain_routes import PARAMETERS as EXPLAIN_PARAMETERS
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import parameters

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Health checks, and what the sign-in page consists of.
OPEN = frozenset(
    {
        "operations.healthz",
        "operations.readyz",
        "access.sign_in",
        "access.sign_in_with",
        "access.sign_out",
        "status.page-files.get_file",
    }
)
# Endpoints whose path names a read model, and the name of that part.
OF_READ_MODEL = {
    "reads.get_record": "name",
    "listing.list_records": "name",
    "changes.get_changes": "name",
    "map.get_map": "name",
}
# Its query may name a read model.
EXPLAIN = "explain.explain"
WHOLE_NODE = Need(Scope.READ)
CHANGES_NODE = Need(Scope.ADMIN)


class Needs:
    """What requests need. by_path: what the lookups of the fast path need."""

    def __init__(self, app: Flask, catalog: Catalog) -> None:
        self._map = app.url_map
        lookups = {lookup.path: lookup_need(api, lookup) for api in catalog.apis for lookup in api.lookups}
        commands = {
            command.path: Need(Scope.WRITE, (api.model.name,))
            for api in catalog.apis
            for command in api.commands
        }
        endpoints = {endpoint.path: Need(Scope.READ, (model.name,)) for model, endpoint in catalog.endpoints}
        self.by_path: Mapping[str, Need] = lookups
        self._declared = {
            f"{blueprint}.{path.replace('.', ':')}": need
            for blueprint, needs in (("reads", lookups), ("commands", commands), ("endpoints", endpoints))
            for path, need in needs.items()
        }

    def of(self, environ: "WSGIEnvironment") -> tuple[bool, Need | None]:
        """Return whether anybody may send a request, and otherwise what it needs; None for one that only gets an error or a redirect."""
        try:
            endpoint, arguments = self._map.bind_to_environ(environ).match()
        except HTTPException:  # also a redirect
            return False, None
        if endpoint in OPEN:
            return True, None
        declared = self._declared.get(endpoint)
        if declared is not None:
            return False, declared
        if endpoint in OF_READ_MODEL:
            return False, Need(Scope.READ, (str(arguments[OF_READ_MODEL[endpoint]]),))
        if endpoint == EXPLAIN:
            return False, _explain_need(environ.get("QUERY_STRING", ""))
        return False, WHOLE_NODE if environ["REQUEST_METHOD"] in SAFE_METHODS else CHANGES_NODE


def lookup_need(api: ReadModelApi, lookup: Lookup) -> Need:
    """Return what a named lookup needs: `read` on each read model whose fields it returns."""
    joined = () if lookup.join is None else (lookup.join.read_model,)
    return Need(Scope.READ, (api.model.name, *joined))


def _explain_need(query: str) -> Need:
    """Return what an explanation needs, from the parameter that its route reads, parsed in the same way."""
    try:
        name = parameters(query, EXPLAIN_PARAMETERS).get("readModel")
    except ProblemError:
        return WHOLE_NODE
    return Need(Scope.READ, (name,)) if name else WHOLE_NODE
