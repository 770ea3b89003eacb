"""A named lookup whose answer is joined with another read model's record for the same key."""

import json
from collections.abc import Iterable

from include.declarations.api import Lookup, LookupJoin, ReadModelApi
from include.declarations.read_model import ReadModel
from query_api.http.lookups.named_lookups import CompiledLookup, Rendered
from query_api.http.lookups.record_texts import RecordTexts
from query_api.lookup.local_results import LocalAnswer
from query_api.lookup.lookups import Lookups


class JoinedLookup(CompiledLookup):
    """A named lookup with a join. Only the node whose store has the record of the lookup itself joins it.

    lookups: find the other read model's record, on this node or another.
    """

    def __init__(
        self, model: ReadModel, lookup: Lookup, join: LookupJoin, joined: ReadModel, lookups: Lookups
    ) -> None:
        super().__init__(model, lookup)
        self._joined_fields = join.fields
        self._records = RecordTexts(lookups, joined, join.fields)

    def render(self, answer: LocalAnswer) -> Rendered:
        """Return the JSON of an answer; raises LookupFailedError if the other read model's record cannot be read."""
        found = self._records.texts(answer.location.key)
        joined = "".join(
            f",{json.dumps(name)}:{found.texts.get(name, 'null')}" for name in self._joined_fields
        )
        return self.body(answer)[:-1] + joined.encode() + b"}", found.age


def compile_lookups(apis: Iterable[ReadModelApi], lookups: Lookups) -> dict[str, CompiledLookup]:
    """Return every named lookup by its path."""
    return {lookup.path: _compiled(api, lookup, lookups) for api in apis for lookup in api.lookups}


def _compiled(api: ReadModelApi, lookup: Lookup, lookups: Lookups) -> CompiledLookup:
    if lookup.join is None:
        return CompiledLookup(api.model, lookup)
    return JoinedLookup(api.model, lookup, lookup.join, api.joined[lookup.join.read_model], lookups)
