"""Answers lookups by key for the fast path and Flask: parses the request, finds the record on this or another node, renders it."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from types import MappingProxyType

from include.nodes.field_names import STYLES, FieldNames, renamed
from include.nodes.peers import REASON_HEADER, Hop, PeerResponse
from include.nodes.record_requests import record_target
from include.position import text_values
from query_api.http.answers import Reply, headers_of, proxied_headers, served_header
from query_api.http.contract.parameters import FIELD_NAMES, KEY, MAX_DIGITS, OF_RECORD, names
from query_api.http.delivery.conditional import entity_tag
from query_api.http.json_text import RecordForm, dumps, record_fields
from query_api.http.lookups.named_lookups import CompiledLookup, Rendered
from query_api.http.problems import ProblemError, lookup_problem, problem_reply
from query_api.http.request_parameters import has_text_decimals, parameters, require_key
from query_api.lookup.lookup_results import FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.position_bound import PositionBound
from query_api.metrics.node_metrics import LOOKUPS, LOOKUPS_LOCAL_OK, LOOKUPS_PEER_OK

RECORD_PARAMETERS = names(OF_RECORD)
KEY_PARAMETER = KEY.name
OK = HTTPStatus.OK.value
# The first name in a record.
RECORD_STARTS = {style: f'{{"{name("read_model")}"'.encode() for style, name in STYLES.items()}
OUTCOMES = frozenset(reason.slug for reason in FailureReason)
# Of a node of another release, which refuses what this one accepts.
OTHER_OUTCOME = "other"


class LookupRouter:
    """A node's lookups by key. Each method returns a reply, also for a failure.

    hop: what the request says if it is from another node. client: the address that the request came from.
    rekeyed: read models whose events are re-keyed -> the topic to which they are produced. They take no `minOffset`.
    """

    def __init__(
        self,
        lookups: Lookups,
        named: Mapping[str, CompiledLookup],
        rekeyed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.named = named
        self._lookups = lookups
        self._rekeyed = rekeyed

    def by_name(self, lookup: CompiledLookup, query: str, hop: Hop | None, client: str) -> Reply:
        """Answer a named lookup."""
        key = lookup.plain_key(query)
        if key is not None:
            return self.reply(
                lookup.model_name, key, None, None, f"{lookup.path}?{query}", hop, lookup.render
            )
        try:
            given = parameters(query, lookup.parameters)
            key = lookup.key(given)
            bound = self._bound(lookup.model_name, given.get("minOffset"), client)
            render = partial(lookup.render, text_decimals=has_text_decimals(given))
        except ProblemError as problem:
            return problem_reply(problem)
        return self.reply(lookup.model_name, key, None, bound, lookup.target(given), hop, render)

    def record(
        self,
        model_name: str,
        key: str | None,
        query: str,
        hop: Hop | None,
        client: str,
        style: FieldNames = FieldNames.CAMEL,
    ) -> Reply:
        """Answer with a key's whole state record. key: from the path; None if it is in the query. style: of the record's own fields."""
        try:
            given = parameters(query, RECORD_PARAMETERS | ({KEY_PARAMETER} if key is None else set()))
            text = given.pop(KEY_PARAMETER, "") if key is None else key
            wanted = require_key(KEY_PARAMETER, text, self._lookups.local.max_key_bytes)
            version = version_number(given.get("version"))
            bound = self._bound(model_name, given.get("minOffset"), client)
            render = partial(self._record_json, form=RecordForm(has_text_decimals(given), style))
        except ProblemError as problem:
            return problem_reply(problem)
        # A node of an earlier release does not know the parameter.
        passed_on = {name: value for name, value in given.items() if value and name != FIELD_NAMES.name}
        target = record_target(model_name, text, passed_on)
        return _with_names(self.reply(model_name, wanted, version, bound, target, hop, render), style)

    def reply(
        self,
        model_name: str,
        key: bytes,
        version: int | None,
        bound: PositionBound | None,
        target: str,
        hop: Hop | None,
        render: Callable[[LocalAnswer], Rendered],
    ) -> Reply:
        """Answer a parsed lookup; `target` is the path and query for the same lookup on another node."""
        lookups = self._lookups
        try:
            location = lookups.local.locate(model_name, key, version)
            found = lookups.answer(location, target, hop, bound)
            if isinstance(found, LocalAnswer):
                body, joined = render(found)
                headers = headers_of(found, joined)
                headers.append(entity_tag(found.location.version, text_values(found.raw), body))
                # The node that a client has asked counts the lookup, and not the one that it asks in turn.
                if hop is None:
                    LOOKUPS_LOCAL_OK.inc()
                else:
                    headers.append(served_header(found))
                return OK, headers, body
        except LookupFailedError as error:
            if hop is None:
                LOOKUPS.labels(error.reason.slug, "local").inc()
            return lookup_problem(error, lookups.local.node_name)
        _count_peer_outcome(found)
        return found.status, proxied_headers(found.headers), found.body

    def _record_json(self, answer: LocalAnswer, *, form: RecordForm) -> Rendered:
        record = self._lookups.local.decode(answer)
        model, version = answer.location.model.name, answer.location.version
        fields = record_fields(answer.location.key, record, text_decimals=form.text_decimals)
        return dumps(renamed({"read_model": model, "version": version, **fields}, form.names)).encode(), None

    def _bound(self, model_name: str, min_offset: str | None, client: str) -> PositionBound | None:
        try:
            bound = PositionBound.parse(min_offset, client)
        except ValueError as error:
            raise ProblemError(400, "invalid-bound", str(error)) from error
        if bound is not None and model_name in self._rekeyed:
            events = self._rekeyed[model_name]
            detail = (
                f"{model_name} folds the events of {events} under another key, where they have other offsets: an offset of {events} is no "
                "bound for its answers. Ask without minOffset; eventCount of the record tells how many events it contains."
            )
            raise ProblemError(400, "bound-of-another-topic", detail)
        return bound


def _with_names(reply: Reply, style: FieldNames) -> Reply:
    """Return the reply with a record whose own fields have these names: a node of another release may have answered with others."""
    status, headers, body = reply
    if status != OK or body.startswith(RECORD_STARTS[style]):
        return reply
    record = json.loads(body, parse_float=Decimal)
    return status, headers, dumps(renamed(record, style)).encode()


def _count_peer_outcome(response: PeerResponse) -> None:
    if response.status == OK:
        LOOKUPS_PEER_OK.inc()
        return
    reason = response.headers.get(REASON_HEADER.lower(), "")
    LOOKUPS.labels(reason if reason in OUTCOMES else OTHER_OUTCOME, "peer").inc()


def version_number(text: str | None) -> int | None:
    """Read the parameter `version`; raises ProblemError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ProblemError(400, "invalid-version", f"version must be a whole number; it is {text[:40]!r}.")
    return int(text)
