"""Pages of a whole read model: one partition after the other, each from its owner, or else from another node that has it.

The cursor names version, partition and key. It is therefore valid on every node, and whoever owns a partition when the next page is asked for
continues after the same key: each key that exists throughout is returned once, also while partitions move from node to node.
"""

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from include.declarations.api import DECIMALS_PARAMETER
from include.nodes.peers import PeerDownError
from include.nodes.record_requests import records_path
from include.settings import Placement
from query_api.lookup.bounding_box import Area
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import AnswerAge, FailureReason, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.lookup.routing import KeyLocation, attempts

# A page of a thousand records can be a megabyte.
PAGE_TIMEOUT_S = 5.0
# A page of a box in which there are few of the records ends after this time, with the records found so far.
AREA_PAGE_S = 0.5
# The key is at most as long as those of any store, 4,096 bytes.
TEXT = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([A-Za-z0-9_-]{0,5462})")
MAX_SHOWN = 100


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
        matched = TEXT.fullmatch(text)
        if matched is None:
            raise InvalidCursorError(text[:MAX_SHOWN])
        try:
            after = base64.urlsafe_b64decode(matched[3] + "=" * (-len(matched[3]) % 4))
            after.decode()
        except ValueError as error:
            raise InvalidCursorError(text[:MAX_SHOWN]) from error
        cursor = cls(int(matched[1]), int(matched[2]), after)
        if cursor.text != text:
            raise InvalidCursorError(text[:MAX_SHOWN])
        return cursor


@dataclass(frozen=True)
class ModelPage:
    """Some records of a read model, as dictionaries for JSON.

    next: the cursor of the next page; None on the last one. age: that of the oldest part of the page.
    """

    read_model: str
    version: int
    records: tuple[dict[str, Any], ...]
    next: Cursor | None
    age: AnswerAge


class Part(NamedTuple):
    """Records of one partition. next: the key to continue after; None at the end of the partition.

    position: the changelog offset up to which the store that they were read from had read at least.
    """

    records: list[dict[str, Any]]
    next: bytes | None
    age: AnswerAge
    position: int


@dataclass(frozen=True)
class PartQuery:
    """Which records to read: up to `limit`, in an area if one is given, with keys that begin with `prefix`.

    text_decimals: whether exact decimals are strings.
    """

    limit: int
    area: Area | None = None
    prefix: bytes = b""
    text_decimals: bool = False


# Reads records of a partition after a key from this node's store; raises LookupFailedError.
ReadPart = Callable[[LocalLookup, KeyLocation, bytes, PartQuery], Part]


class ModelPages:
    """Reads pages of read models. One per HTTP worker process; thread-safe."""

    def __init__(self, lookups: Lookups, read_part: ReadPart) -> None:
        self._lookups = lookups
        self._read_part = read_part

    def page(
        self,
        read_model: str,
        cursor: Cursor | None,
        version: int | None,
        query: PartQuery,
    ) -> ModelPage:
        """Return the first records from a cursor on. version: of the first page; None for the live one.

        Raises LookupFailedError, also if no node has the next partition, and InvalidCursorError for one that the version does not have.
        """
        deadline_s = time.monotonic() + AREA_PAGE_S
        local = self._lookups.local
        start = local.locate(read_model, b"", cursor.version if cursor else version)
        at: Cursor | None = cursor or Cursor(start.version)
        if cursor is not None and cursor.partition >= start.model.partition_count:
            raise InvalidCursorError(cursor.text[:MAX_SHOWN])
        records: list[dict[str, Any]] = []
        ages: list[AnswerAge] = []
        while at is not None and len(records) < query.limit:
            part = self.part(read_model, at, replace(query, limit=query.limit - len(records)))
            records += part.records
            ages.append(part.age)
            if part.next is not None:
                at = Cursor(at.version, at.partition, part.next)
            elif at.partition + 1 < start.model.partition_count:
                at = Cursor(at.version, at.partition + 1)
            else:
                at = None
            if query.area is not None and time.monotonic() > deadline_s:
                break
        return ModelPage(read_model, start.version, tuple(records), at, AnswerAge.oldest(ages))

    def part(self, read_model: str, at: Cursor, query: PartQuery) -> Part:
        """Return the next records of the cursor's partition; raises LookupFailedError if no node has it."""
        local = self._lookups.local
        location = local.partition_location(read_model, at.partition, at.version)
        for url, rule in attempts(location):
            if rule is not None:
                part = self._there(url, rule, location, at, query)
            else:
                part = self._here(location, at, query) if local.is_current(location) else None
            if part is not None:
                return part
        # No node has newer records than those in Redis: while another node takes a partition over, the answer says how old they can be.
        if (
            location.model.placement is Placement.REDIS
            and (part := self._here(location, at, query)) is not None
        ):
            return part
        raise LookupFailedError(
            FailureReason.NOT_READY,
            f"No node that stores partition {at.partition} of {read_model} v{at.version} answers.",
        )

    def _here(self, location: KeyLocation, at: Cursor, query: PartQuery) -> Part | None:
        local = self._lookups.local
        if location.stored is None:
            return None
        try:
            return self._read_part(local, location, at.after, query)
        except LookupFailedError:
            return None

    def _there(self, url: str, rule: str, location: KeyLocation, at: Cursor, query: PartQuery) -> Part | None:
        peer = self._lookups.peers.at(url)
        if peer.is_down:
            return None
        target = f"{records_path(location.model.name)}?partition={at.partition}&version={at.version}&limit={query.limit}"
        if at.after:
            target += f"&after={quote(at.after)}"
        if query.area is not None:
            target += f"&within={query.area.box.text}"
        if query.prefix:
            target += f"&prefix={quote(query.prefix)}"
        if query.text_decimals:
            target += f"&{DECIMALS_PARAMETER}=string"
        try:
            answer = peer.get(target, rule, PAGE_TIMEOUT_S)
        except PeerDownError:
            return None
        if answer.status != HTTPStatus.OK:
            return None
        page = json.loads(answer.body, parse_float=Decimal)
        after = page["next"]
        return Part(
            page["records"],
            None if after is None else after.encode(),
            AnswerAge.of_headers(answer.headers),
            # A node of an earlier release does not say: nothing before the start is known to be in its store.
            page.get("position", 0),
        )
