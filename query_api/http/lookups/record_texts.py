"""Fields of a key's record as JSON, wherever the record is, for answers that are made of several records."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from http import HTTPStatus
from typing import Any, NamedTuple

from include.declarations.api import DECIMALS_PARAMETER
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.nodes.field_names import FieldNames, renamed
from include.nodes.peers import REASON_HEADER, PeerResponse
from include.nodes.record_requests import record_target
from query_api.http.json_text import dumps, raw_json
from query_api.lookup.lookup_results import AnswerAge, FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.lookups import Lookups


class RecordText(NamedTuple):
    """The JSON of each field, in order, null for one that an older fold lacks; empty if the key has no record. age: of the record."""

    texts: Mapping[str, str]
    age: AnswerAge


class RecordTexts:
    """Reads some fields of the records of one read model. Thread-safe.

    lookups: find a record, on this node or another. text_decimals: whether exact decimals are strings.
    """

    def __init__(
        self, lookups: Lookups, model: ReadModel, fields: Iterable[str], *, text_decimals: bool = False
    ) -> None:
        self._lookups = lookups
        self._model_name = model.name
        types = {field.name: field.avro_type for field in (*model.state, *POSITION_FIELDS)}
        self._fields = {name: raw_json(types[name], text_decimals=text_decimals) for name in fields}
        self._given = {DECIMALS_PARAMETER: "string"} if text_decimals else {}

    def live_version(self) -> int:
        """Return the live version; raises LookupFailedError."""
        return self._lookups.local.locate(self._model_name, b"").version

    def texts(self, key: bytes, version: int | None = None) -> RecordText:
        """Return the fields of a key's record in a version, or in the live one; raises LookupFailedError if it cannot be read now."""
        name = self._model_name
        try:
            location = self._lookups.local.locate(name, key, version)
            # Another node may have another live version meanwhile.
            target = record_target(name, key.decode(), {"version": location.version, **self._given})
            found = self._lookups.answer(location, target, None)
        except LookupFailedError as error:
            if error.reason is FailureReason.UNKNOWN_KEY and error.partition is not None:
                return RecordText({}, AnswerAge.of_partition(error.partition))
            raise LookupFailedError(
                FailureReason.NOT_READY, f"The record of {name} cannot be read: {error.detail}"
            ) from error
        if isinstance(found, LocalAnswer):
            raw = found.raw
            texts = {
                name: "null" if raw.get(name) is None else text(raw[name])
                for name, text in self._fields.items()
            }
            return RecordText(texts, AnswerAge.of_partition(found.partition))
        return RecordText(self._texts_of_peer(found), AnswerAge.of_headers(found.headers))

    def _texts_of_peer(self, response: PeerResponse) -> Mapping[str, str]:
        if response.headers.get(REASON_HEADER.lower()) == FailureReason.UNKNOWN_KEY.slug:
            return {}
        if response.status != HTTPStatus.OK:
            raise LookupFailedError(
                FailureReason.NOT_READY,
                f"The record of {self._model_name} cannot be read: another node answered with status {response.status}.",
            )
        # Decimals keep their scale.
        record: dict[str, Any] = renamed(json.loads(response.body, parse_float=Decimal), FieldNames.SNAKE)
        fields = record | record["state"]
        return {name: dumps(fields.get(name)) for name in self._fields}
