"""Answers lookups on any node: from its own store if it owns the key's partition or has all partitions, else by proxying to the owner.

A node that has lost its connection to Kafka asks the other nodes first (docs/decisions/0029).
"""

import time
from collections.abc import Iterator
from http import HTTPStatus

from include.http_replies import BUSY, REFUSED, is_json
from include.nodes.peers import (
    ANSWER_TIMEOUT_S,
    HOP_ANY,
    HOP_CURRENT,
    HOP_OWNER,
    REASON_HEADER,
    SERVED_HEADER,
    Hop,
    PeerDownError,
    PeerResponse,
    Peers,
    ServedOffset,
)
from query_api.lookup.key_location import KeyLocation
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.local_results import LocalAnswer
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.lookup.position_bound import MAX_WAIT_S, PositionBound
from query_api.lookup.routing import candidates

# After these failures, another node may still have the answer.
TRY_ELSEWHERE = frozenset({FailureReason.NOT_OWNER, FailureReason.NOT_READY})
_SERVED_HEADER = SERVED_HEADER.lower()
_TRY_ELSEWHERE_SLUGS = frozenset(reason.slug for reason in TRY_ELSEWHERE)
# A node that has no current answer for a partition is not asked for it again for this time: without Kafka, each lookup would ask
# all nodes in vain.
OUTDATED_S = 0.5


class Lookups:
    """The routing of lookups. One per HTTP worker process; thread-safe."""

    def __init__(self, local: LocalLookup, peers: Peers) -> None:
        self.local = local
        self.peers = peers
        # (URL, read model, partition) -> when to ask again, by the monotonic clock.
        self._outdated_until: dict[tuple[str, str, int], float] = {}

    def answer(
        self, place: KeyLocation, target: str, hop: Hop | None, bound: PositionBound | None = None
    ) -> LocalAnswer | PeerResponse:
        """Return the answer for a key; `target` is the path and query for the same lookup on another node.

        hop: if the request is from another node. Such a request is never proxied again, which prevents loops.
        Raises LookupFailedError.
        """
        if hop is not None and hop.rule == HOP_OWNER and not place.is_owned_here:
            detail = f"{self.local.node_name} does not own partition {place.partition} of {place.model.name}."
            raise LookupFailedError(FailureReason.NOT_OWNER, detail)
        if hop is None and not self.local.is_current(place):
            return self._newest_answer(place, target, bound)
        if hop is not None:
            if hop.rule == HOP_CURRENT and not self.local.is_current(place):
                detail = f"{self.local.node_name} has not confirmed partition {place.partition} of {place.model.name} recently."
                raise LookupFailedError(FailureReason.NOT_READY, detail)
            # What was answered with another version says nothing about this one.
            is_same = hop.served is not None and hop.served.version == place.version
            return self.local.find(place, bound, hop.served.offset if hop.served and is_same else 0)
        failure: LookupFailedError | None = None
        if place.is_answered_here:
            try:
                return self.local.find(place, bound)
            except LookupFailedError as error:
                if error.reason not in TRY_ELSEWHERE:
                    raise
                # A copy: the traceback of the error itself would keep the failed store open.
                failure = LookupFailedError(error.reason, error.detail)
        found = self._first_answer(place, target, bound)
        if found is not None:
            return found
        raise failure or _no_answer(place)

    def _first_answer(
        self, place: KeyLocation, target: str, bound: PositionBound | None
    ) -> LocalAnswer | PeerResponse | None:
        """Try the owner, its standbys, then the other nodes; this node only if the caller has not tried that."""
        for url in in_order(place):
            if url != place.state.url:
                hop = HOP_OWNER if url == place.owner else HOP_ANY
                response = self._ask(url, place, target, bound, hop)
                if response is not None:
                    return response
            elif not place.is_answered_here:
                try:
                    return self.local.find(place, bound)
                except LookupFailedError as error:
                    if error.reason not in TRY_ELSEWHERE:
                        raise
        return None

    def _newest_answer(
        self, place: KeyLocation, target: str, bound: PositionBound | None
    ) -> LocalAnswer | PeerResponse:
        """Answer for a partition whose end this node has not confirmed recently, because it does not reach Kafka or cannot write.

        Another node that is current comes first, then this node, then any other.
        """
        for url in in_order(place):
            asked = (url, place.model.name, place.partition)
            if url == place.state.url or time.monotonic() < self._outdated_until.get(asked, 0.0):
                continue
            response = self._ask(url, place, target, bound, HOP_CURRENT)
            if response is not None:
                return response
            self._outdated_until[asked] = time.monotonic() + OUTDATED_S
        try:
            return self.local.find(place, bound)
        except LookupFailedError as error:
            if error.reason not in TRY_ELSEWHERE:
                raise
            found = self._first_answer(place, target, bound)
            if found is None:
                raise
            return found

    def _ask(
        self, url: str, place: KeyLocation, target: str, bound: PositionBound | None, hop: str
    ) -> PeerResponse | None:
        """Return another node's answer, or None when a further node should be tried."""
        peer = self.peers.at(url)
        if peer.is_down:
            return None
        timeout_s = ANSWER_TIMEOUT_S + (MAX_WAIT_S if bound else 0.0)
        try:
            served = ServedOffset(place.version, self.local.served(place))
            response = peer.get(target, hop, timeout_s, served)
        except PeerDownError:
            return None
        reason = response.headers.get(REASON_HEADER.lower())
        if reason in _TRY_ELSEWHERE_SLUGS or (reason is None and _is_no_answer(response)):
            return None
        answered = ServedOffset.parse(response.headers.get(_SERVED_HEADER))
        if answered is not None:
            self.local.note_served(place, *answered)
        return response


def _is_no_answer(response: PeerResponse) -> bool:
    """Return whether a response is an error of the node, or that of a proxy in front of it: a lookup has none of these statuses."""
    status, content_type = response.status, response.headers.get("content-type")
    return (
        status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or status in BUSY
        or status in REFUSED
        or (content_type is not None and not is_json(content_type))
    )


def _no_answer(place: KeyLocation) -> LookupFailedError:
    owner = f"is owned by {place.owner}" if place.owner else "has no owner yet"
    where = f"Partition {place.partition} of {place.model.name}"
    return LookupFailedError(FailureReason.NOT_READY, f"{where} {owner}, and no node that stores it answers.")


def in_order(place: KeyLocation) -> Iterator[str]:
    """Yield the URLs of the nodes to try. The owner comes first without sorting the others: it nearly always answers.

    A node that has all partitions comes before the owner.
    """
    here = place.state.url
    first = here if place.is_answered_here else place.owner
    if first is not None:
        yield first
    nodes = {*place.state.nodes, here}
    for url in candidates(place.owner, place.model.standbys.get(place.partition, ()), nodes):
        if url != first:
            yield url
