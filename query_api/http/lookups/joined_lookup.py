"""A named lookup whose answer is joined with another read model's record for the same key."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from include.declarations.api import LookupJoin, NamedLookup, ReadModelApi
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.nodes.peers import REASON_HEADER, PeerResponse
from query_api.http.json_text import dumps, raw_json
from query_api.http.lookups.named_lookups import CompiledLookup
from query_api.lookup.local_lookup import LocalAnswer
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.lookup.lookups import Lookups


class JoinedLookup(CompiledLookup):
    """A named lookup with a join. Only the node whose store has the record of the lookup itself joins it.

    lookups: find the other read model's record, on this node or another.
    """

    def __init__(
        self, model: ReadModel, lookup: NamedLookup, join: LookupJoin, joined: ReadModel, lookups: Lookups
    ) -> None:
        super().__init__(model, lookup)
        self._joined = joined.name
        self._lookups = lookups
        types = {field.name: field.avro_type for field in (*joined.state, *POSITION_FIELDS)}
        self._joined_fields = {name: raw_json(types[name]) for name in join.fields}

    def body(self, answer: LocalAnswer) -> bytes:
        """Return the JSON of an answer; raises LookupFailedError if the other read model's record cannot be read."""
        texts = self._joined_texts(answer.place.key)
        joined = "".join(f",{json.dumps(name)}:{texts.get(name, 'null')}" for name in self._joined_fields)
        return super().body(answer)[:-1] + joined.encode() + b"}"

    def _joined_texts(self, key: bytes) -> Mapping[str, str]:
        """Return the JSON of each field of the other read model's record; empty if it has none of the key."""
        target = f"/api/read-models/{quote(self._joined, safe='')}/records/{quote(key, safe='')}"
        try:
            place = self._lookups.local.place(self._joined, key)
            found = self._lookups.answer(place, target, None)
        except LookupFailedError as error:
            if error.reason is FailureReason.UNKNOWN_KEY:
                return {}
            raise LookupFailedError(
                FailureReason.NOT_READY, f"The join with {self._joined} failed: {error.detail}"
            ) from error
        if isinstance(found, LocalAnswer):
            raw = found.raw
            return {
                name: text(raw[name])
                for name, text in self._joined_fields.items()
                if raw.get(name) is not None
            }
        return self._texts_of_peer(found)

    def _texts_of_peer(self, response: PeerResponse) -> Mapping[str, str]:
        if response.headers.get(REASON_HEADER.lower()) == FailureReason.UNKNOWN_KEY.slug:
            return {}
        if response.status != HTTPStatus.OK:
            raise LookupFailedError(
                FailureReason.NOT_READY,
                f"The join with {self._joined} failed: another node answered with status {response.status}.",
            )
        # Decimals keep their scale.
        record: dict[str, Any] = json.loads(response.body, parse_float=Decimal)
        fields = record | record["state"]
        return {name: dumps(fields[name]) for name in self._joined_fields if name in fields}


def compile_lookups(apis: Iterable[ReadModelApi], lookups: Lookups) -> dict[str, CompiledLookup]:
    """Return every named lookup by its path."""
    return {lookup.path: _compiled(api, lookup, lookups) for api in apis for lookup in api.lookups}


def _compiled(api: ReadModelApi, lookup: NamedLookup, lookups: Lookups) -> CompiledLookup:
    if lookup.join is None:
        return CompiledLookup(api.model, lookup)
    return JoinedLookup(api.model, lookup, lookup.join, api.joined[lookup.join.read_model], lookups)
