"""Pages of a whole read model: one partition after the other, each from its owner, or else from another node that has it.

The cursor names version, partition and key. It is therefore valid on every node, and whoever owns a partition when the next page is asked for
continues after the same key: each key that exists throughout is returned once, also while partitions move from node to node.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from include.nodes.peers import HOP_ANY, HOP_OWNER, LAG_HEADER, PeerDownError
from include.settings import Placement
from query_api.lookup.key_location import KeyLocation
from query_api.lookup.local_lookup import LocalLookup, LocalPage
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.lookup.lookups import Lookups, in_order
from query_api.store.base import Sample

# A page of a thousand records can be a megabyte.
PAGE_TIMEOUT_S = 5.0


class InvalidCursorError(ValueError):
    """The text is not a cursor that a page has returned."""


@dataclass(frozen=True)
class Cursor:
    """Where the next page begins: after a key of a partition of a version; the empty key stands for the start of the partition."""

    version: int
    partition: int = 0
    after: bytes = b""

    @property
    def text(self) -> str:
        """The cursor as text for a URL."""
        key = base64.urlsafe_b64encode(self.after).decode().rstrip("=")
        return f"{self.version}.{self.partition}.{key}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read the text form; raises InvalidCursorError."""
        try:
            version, partition, key = text.split(".")
            padded = key + "=" * (-len(key) % 4)
            cursor = cls(
                int(version), int(partition), base64.b64decode(padded, altchars=b"-_", validate=True)
            )
        except ValueError as error:
            raise InvalidCursorError(text) from error
        if cursor.text != text or cursor.version < 0 or cursor.partition < 0:
            raise InvalidCursorError(text)
        return cursor


@dataclass(frozen=True)
class ModelPage:
    """Some records of a read model, as dictionaries for JSON.

    next: the cursor of the next page; None on the last one. lag_ms: how old the oldest part of the page can be.
    """

    read_model: str
    version: int
    records: tuple[dict[str, Any], ...]
    next: Cursor | None
    lag_ms: int


@dataclass(frozen=True)
class _Part:
    """Records of one partition. next: the key to continue after; None at the end of the partition."""

    records: list[dict[str, Any]]
    next: bytes | None
    lag_ms: int


class ModelPages:
    """Reads pages of read models. One per HTTP worker process; thread-safe.

    fields_of: returns the records of a local page as dictionaries.
    """

    def __init__(
        self, lookups: Lookups, fields_of: Callable[[LocalLookup, LocalPage], list[dict[str, Any]]]
    ) -> None:
        self._lookups = lookups
        self._fields_of = fields_of

    def page(self, read_model: str, cursor: Cursor | None, version: int | None, limit: int) -> ModelPage:
        """Return up to `limit` records. version: of the first page; None for the live one.

        Raises LookupFailedError, also if no node has the next partition.
        """
        local = self._lookups.local
        start = local.place(read_model, b"", cursor.version if cursor else version)
        at: Cursor | None = cursor or Cursor(start.version)
        records: list[dict[str, Any]] = []
        lag_ms = 0
        while at is not None and len(records) < limit:
            part = self._part(read_model, at, limit - len(records))
            records += part.records
            lag_ms = max(lag_ms, part.lag_ms)
            if part.next is not None:
                at = Cursor(at.version, at.partition, part.next)
            elif at.partition + 1 < start.model.partition_count:
                at = Cursor(at.version, at.partition + 1)
            else:
                at = None
        return ModelPage(read_model, start.version, tuple(records), at, lag_ms)

    def _part(self, read_model: str, at: Cursor, limit: int) -> _Part:
        local = self._lookups.local
        place = local.place_of_partition(read_model, at.partition, at.version)
        for url in in_order(place):
            if url != place.state.url:
                part = self._there(url, place, at, limit)
            else:
                part = self._here(place, at, limit) if local.is_current(place) else None
            if part is not None:
                return part
        # No node has newer records than those in Redis: while another node takes a partition over, the answer says how old they can be.
        if place.model.placement is Placement.REDIS and (part := self._here(place, at, limit)) is not None:
            return part
        raise LookupFailedError(
            FailureReason.NOT_READY,
            f"No node that stores partition {at.partition} of {read_model} v{at.version} answers.",
        )

    def _here(self, place: KeyLocation, at: Cursor, limit: int) -> _Part | None:
        local = self._lookups.local
        if place.stored is None:
            return None
        try:
            found = local.page(place, at.after, limit, Sample())
        except LookupFailedError:
            return None
        return _Part(self._fields_of(local, found), found.page.next, found.partition.lag_ms())

    def _there(self, url: str, place: KeyLocation, at: Cursor, limit: int) -> _Part | None:
        peer = self._lookups.peers.at(url)
        if peer.is_down:
            return None
        target = f"/api/read-models/{quote(place.model.name, safe='')}/records?partition={at.partition}&version={at.version}&limit={limit}"
        if at.after:
            target += f"&after={quote(at.after)}"
        try:
            answer = peer.get(target, HOP_OWNER if url == place.owner else HOP_ANY, PAGE_TIMEOUT_S)
        except PeerDownError:
            return None
        if answer.status != HTTPStatus.OK:
            return None
        page = json.loads(answer.body, parse_float=Decimal)
        after = page["next"]
        return _Part(
            page["records"],
            None if after is None else after.encode(),
            int(answer.headers.get(LAG_HEADER.lower(), 0)),
        )
