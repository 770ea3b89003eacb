"""The named lookups of the read models, compiled from their declarations: parse the request's key, render the answer's JSON.

The answer of a lookup may be joined with another read model's record for the same key.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from include.declarations.api import BOUND_PARAMETER, DECIMALS_PARAMETER, Lookup, LookupJoin, ReadModelApi
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.kafka.wire_format import key_fault
from query_api.http.json_text import raw_json
from query_api.http.lookups.record_texts import RecordTexts
from query_api.http.problem_kinds import parameter_slug
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import BAD_ESCAPE
from query_api.lookup.lookup_results import AnswerAge, LocalAnswer
from query_api.lookup.lookups import Lookups

Rendered = tuple[bytes, AnswerAge | None]
"""The body of an answer, and the age of what is joined with its record, if anything is."""


class CompiledLookup:
    """A named lookup of a read model, compiled for fast answers."""

    def __init__(self, model: ReadModel, lookup: Lookup) -> None:
        self.path = lookup.path
        self.model_name = model.name
        self.parameters = frozenset({lookup.parameter, BOUND_PARAMETER, DECIMALS_PARAMETER})
        self._parameter = lookup.parameter
        self._max_key_bytes = lookup.max_key_bytes
        self._prefix = f"{lookup.parameter}="
        self._prefix_length = len(self._prefix)
        # A problem's slug has the parameter's name in lower case with dashes: order-id for orderId.
        self._slug = parameter_slug(lookup.parameter)
        self._fields, self._text_fields = (
            _field_texts(model, lookup.fields, text_decimals=text_decimals) for text_decimals in (False, True)
        )

    def plain_key(self, query: str) -> bytes | None:
        """Return the key of a query of the plain form `<parameter>=<key>`; None for any other or invalid query."""
        if not query.startswith(self._prefix) or "&" in query or "+" in query:
            return None
        text = query[self._prefix_length :]
        if not text.isascii():
            return None
        if "%" in text:
            key = unquote_to_bytes(text)
            if BAD_ESCAPE.search(text) or key_fault(key, self._max_key_bytes):
                return None
        else:
            key = text.encode("ascii")
        return key if 0 < len(key) <= self._max_key_bytes else None

    def key(self, given: dict[str, str]) -> bytes:
        """Return the key in a request's parameters; raises ProblemError."""
        text = given.get(self._parameter)
        if not text:
            detail = f"{self._parameter} is missing: use {self.path}?{self._parameter}=..."
            raise ProblemError(400, f"missing-{self._slug}", detail)
        key = text.encode()
        fault = key_fault(key, self._max_key_bytes)
        if fault:
            raise ProblemError(400, f"{self._slug}-too-long", f"{self._parameter} {fault}.")
        return key

    def target(self, given: dict[str, str]) -> str:
        """Return the path and query for the same lookup on another node."""
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items() if value)
        return f"{self.path}?{query}"

    def render(self, answer: LocalAnswer, *, text_decimals: bool = False) -> Rendered:
        """Return the JSON of an answer; raises LookupFailedError if a part of it cannot be read."""
        return self.body(answer, text_decimals=text_decimals), None

    def body(self, answer: LocalAnswer, *, text_decimals: bool = False) -> bytes:
        """Return the JSON of the answer's own record: exact decimals that keep their scale; null for a field that an older fold lacks."""
        raw = answer.raw
        text = ""
        for start, name, as_json in self._text_fields if text_decimals else self._fields:
            value = raw.get(name)
            text += start + ("null" if value is None else as_json(value))
        return (text + "}").encode()


def _field_texts(
    model: ReadModel, names: Iterable[str], *, text_decimals: bool
) -> list[tuple[str, str, Callable[[Any], str]]]:
    """Return what every lookup uses: the JSON before the value, the field's name, and the function that renders the value."""
    types = {field.name: field.avro_type for field in (*model.state, *POSITION_FIELDS)}
    return [
        (
            f"{',' if number else '{'}{json.dumps(name)}:",
            name,
            raw_json(types[name], text_decimals=text_decimals),
        )
        for number, name in enumerate(names)
    ]


class JoinedLookup(CompiledLookup):
    """A named lookup with a join. Only the node whose store has the record of the lookup itself joins it.

    lookups: find the other read model's record, on this node or another.
    """

    def __init__(
        self, model: ReadModel, lookup: Lookup, join: LookupJoin, joined: ReadModel, lookups: Lookups
    ) -> None:
        super().__init__(model, lookup)
        self._joined_fields = join.fields
        self._records = {
            text_decimals: RecordTexts(lookups, joined, join.fields, text_decimals=text_decimals)
            for text_decimals in (False, True)
        }

    def render(self, answer: LocalAnswer, *, text_decimals: bool = False) -> Rendered:
        """Return the JSON of an answer; raises LookupFailedError if the other read model's record cannot be read."""
        found = self._records[text_decimals].texts(answer.location.key)
        joined = "".join(
            f",{json.dumps(name)}:{found.texts.get(name, 'null')}" for name in self._joined_fields
        )
        return self.body(answer, text_decimals=text_decimals)[:-1] + joined.encode() + b"}", found.age


def compile_lookups(apis: Iterable[ReadModelApi], lookups: Lookups) -> dict[str, CompiledLookup]:
    """Return every named lookup by its path."""
    return {lookup.path: _compiled(api, lookup, lookups) for api in apis for lookup in api.lookups}


def _compiled(api: ReadModelApi, lookup: Lookup, lookups: Lookups) -> CompiledLookup:
    if lookup.join is None:
        return CompiledLookup(api.model, lookup)
    return JoinedLookup(api.model, lookup, lookup.join, api.joined[lookup.join.read_model], lookups)
