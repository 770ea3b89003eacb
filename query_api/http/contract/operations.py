"""Operations of the API as values, and their form in an OpenAPI document."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from include.declarations.kinds.endpoint import INVALID_PARAMETER
from query_api.http.contract.headers import OF_LOOKUP, PROBLEM_HEADERS, RETRY_AFTER, header_objects
from query_api.http.contract.json_schema import Schema
from query_api.http.contract.parameters import Parameter, names
from query_api.http.problem_kinds import ProblemKind, kind_of
from query_api.http.problems import MEDIA_TYPE, TYPE_PREFIX
from query_api.lookup.lookup_results import FailureReason

JSON = "application/json"
# Of every request: query_api/http/request_checks.py.
OF_EVERY_REQUEST = (
    "invalid-path",
    "ambiguous-length",
    "foreign-host",
    "foreign-origin",
    "internal-server-error",
)
LOOKUP_REASONS = frozenset(reason.slug for reason in FailureReason)
OF_QUERIES = ("unknown-parameter", "repeated-parameter", "invalid-query")
# Of every request to a node that requires credentials.
OF_SECURED_NODE = (
    "unauthenticated",
    "missing-scope",
    "read-model-not-allowed",
    "peer-header",
    "rate-limited",
)
AUTHENTICATE = {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}


@dataclass(frozen=True)
class Answer:
    """A successful response. content: the schema of its body by media type. headers: names of those that it always has."""

    description: str
    content: Mapping[str, Schema] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    status: int = 200

    def openapi(self) -> dict[str, Any]:
        """Return its Response Object."""
        found: dict[str, Any] = {"description": self.description}
        if self.headers:
            found["headers"] = header_objects(self.headers)
        if self.content:
            found["content"] = {media_type: {"schema": schema} for media_type, schema in self.content.items()}
        return found


# Of a lookup whose request has If-None-Match.
UNCHANGED = Answer("The client has the answer.", {}, OF_LOOKUP, status=HTTPStatus.NOT_MODIFIED.value)


@dataclass(frozen=True)
class Operation:
    """A method of a path.

    problems: slugs of the problems that only some operations have. scope: that a caller needs; None for an operation that is open to all.
    body: the schema of the JSON object that it takes, with an example. deprecation: why clients should stop using it, and what to use
    instead; empty if they should not.
    """

    path: str
    id: str
    tag: str
    summary: str
    answers: tuple[Answer, ...]
    problems: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    method: str = "get"
    description: str = ""
    scope: str | None = "read"
    body: tuple[Schema, Any] | None = None
    deprecation: str = ""

    @property
    def all_problems(self) -> tuple[str, ...]:
        """The slugs of all problems that it can return."""
        of_queries = OF_QUERIES if names(self.parameters) else ()
        return tuple(dict.fromkeys((*self.problems, *of_queries, *OF_EVERY_REQUEST)))

    def openapi(self, *, is_secured: bool) -> dict[str, Any]:
        """Return its Operation Object. is_secured: whether callers need credentials."""
        found: dict[str, Any] = {"operationId": self.id, "tags": [self.tag], "summary": self.summary}
        if about := " ".join(text for text in (self.description, self.deprecation) if text):
            found["description"] = about
        if self.deprecation:
            found["deprecated"] = True
        if self.parameters:
            found["parameters"] = [one.openapi() for one in self.parameters]
        if self.body is not None:
            schema, example = self.body
            content = {"schema": schema, "example": example} if example else {"schema": schema}
            found["requestBody"] = {"required": True, "content": {JSON: content}}
        responses = {answer.status: answer.openapi() for answer in self.answers} | self._problem_responses()
        if self.scope is None:
            found["security"] = []
        elif is_secured:
            found["security"] = [{"bearerAuth": [self.scope]}]
            responses[HTTPStatus.UNAUTHORIZED] = _shared(HTTPStatus.UNAUTHORIZED)
        return {**found, "responses": {str(status): responses[status] for status in sorted(responses)}}

    def _problem_responses(self) -> dict[int, Any]:
        every = set(OF_EVERY_REQUEST)
        return {
            status: _shared(status)
            if {slug for slug, _ in kinds} <= every
            else _problem_response(status, kinds)
            for status, kinds in _by_status(self.all_problems).items()
        }


def shared_responses(*, is_secured: bool) -> dict[str, Any]:
    """Return the responses of every operation by their name, the status."""
    slugs = (*OF_EVERY_REQUEST, *OF_SECURED_NODE) if is_secured else OF_EVERY_REQUEST
    return {
        str(status): _problem_response(status, kinds) for status, kinds in sorted(_by_status(slugs).items())
    }


def _shared(status: int) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{int(status)}"}


def _by_status(slugs: Iterable[str]) -> dict[int, list[tuple[str, ProblemKind]]]:
    found: defaultdict[int, list[tuple[str, ProblemKind]]] = defaultdict(list)
    for slug in sorted(slugs):
        kind = kind_of(slug)
        if kind is None:
            message = f"{slug} is not in problem_kinds.py"
            raise ValueError(message)
        for status in kind.statuses:
            found[status].append((slug, kind))
    return found


def _problem_response(status: int, kinds: list[tuple[str, ProblemKind]]) -> dict[str, Any]:
    about = "\n".join(f"- `{slug}`: {kind.meaning}" for slug, kind in kinds)
    own = {"type": {"enum": [TYPE_PREFIX + slug for slug, _ in kinds]}, "status": {"const": status}}
    if INVALID_PARAMETER in dict(kinds):
        # A declared kind of lookup may have slugs that it does not list.
        own.pop("type")
    headers = dict(PROBLEM_HEADERS) if LOOKUP_REASONS & dict(kinds).keys() else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers |= AUTHENTICATE
    if any(kind.may_retry for _, kind in kinds):
        headers |= header_objects([RETRY_AFTER], is_required=False)
    schema = {"$ref": "#/components/schemas/Problem", "properties": own}
    content = {MEDIA_TYPE: {"schema": schema}, "text/html": {"schema": {"type": "string"}}}
    return {"description": about} | ({"headers": headers} if headers else {}) | {"content": content}
