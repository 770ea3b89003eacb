"""Answers lookups on any node: from its own store, or by proxying to another node, in the order of query_api.lookup.routing."""

import time
from http import HTTPStatus

from include.http_replies import BUSY, REFUSED, is_json
from include.nodes.peers import (
    ANSWER_TIMEOUT_S,
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
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LocalAnswer, LookupFailedError
from query_api.lookup.position_bound import MAX_WAIT_S, PositionBound
from query_api.lookup.routing import KeyLocation, attempts

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
        self, location: KeyLocation, target: str, hop: Hop | None, bound: PositionBound | None = None
    ) -> LocalAnswer | PeerResponse:
        """Return the answer for a key; `target` is the path and query for the same lookup on another node.

        hop: if the request is from another node. Such a request is never proxied again, which prevents loops.
        Raises LookupFailedError.
        """
        if hop is not None:
            return self._answer_node(location, hop, bound)
        is_current = self.local.is_current(location)
        failure: LookupFailedError | None = None
        for url, rule in attempts(location, is_current=is_current):
            if rule is None:
                try:
                    return self.local.find(location, bound)
                except LookupFailedError as error:
                    if error.reason not in TRY_ELSEWHERE:
                        raise
                    if location.is_answered_here or not is_current:
                        # A copy: the traceback of the error itself would keep the failed store open.
                        failure = LookupFailedError(error.reason, error.detail)
            elif (response := self._ask(url, location, target, bound, rule)) is not None:
                return response
        raise failure or _no_answer(location)

    def _answer_node(self, location: KeyLocation, hop: Hop, bound: PositionBound | None) -> LocalAnswer:
        """Answer another node from this node's store; raises LookupFailedError, also if the request's rule excludes this node."""
        where = f"partition {location.partition} of {location.model.name}"
        if hop.rule == HOP_OWNER and not location.is_owned_here:
            raise LookupFailedError(FailureReason.NOT_OWNER, f"{self.local.node_name} does not own {where}.")
        if hop.rule == HOP_CURRENT and not self.local.is_current(location):
            detail = f"{self.local.node_name} has not confirmed {where} recently."
            raise LookupFailedError(FailureReason.NOT_READY, detail)
        # What was answered with another version says nothing about this one.
        is_same = hop.served is not None and hop.served.version == location.version
        return self.local.find(location, bound, hop.served.offset if hop.served and is_same else 0)

    def _ask(
        self, url: str, location: KeyLocation, target: str, bound: PositionBound | None, rule: str
    ) -> PeerResponse | None:
        """Return another node's answer, or None when a further node should be tried."""
        if rule != HOP_CURRENT:
            return self._request(url, location, target, bound, rule)
        asked = (url, location.model.name, location.partition)
        if time.monotonic() < self._outdated_until.get(asked, 0.0):
            return None
        response = self._request(url, location, target, bound, rule)
        if response is None:
            self._outdated_until[asked] = time.monotonic() + OUTDATED_S
        return response

    def _request(
        self, url: str, location: KeyLocation, target: str, bound: PositionBound | None, rule: str
    ) -> PeerResponse | None:
        peer = self.peers.at(url)
        if peer.is_down:
            return None
        timeout_s = ANSWER_TIMEOUT_S + (MAX_WAIT_S if bound else 0.0)
        try:
            offset = self.local.served.of_location(location).of(location.partition)
            response = peer.get(target, rule, timeout_s, ServedOffset(location.version, offset))
        except PeerDownError:
            return None
        reason = response.headers.get(REASON_HEADER.lower())
        if reason in _TRY_ELSEWHERE_SLUGS or (reason is None and _is_no_answer(response)):
            return None
        answered = ServedOffset.parse(response.headers.get(_SERVED_HEADER))
        if answered is not None and answered.version in location.model.versions:
            offsets = self.local.served.of_location(location, answered.version)
            offsets.extend(location.partition, answered.offset)
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


def _no_answer(location: KeyLocation) -> LookupFailedError:
    owner = f"is owned by {location.owner}" if location.owner else "has no owner yet"
    where = f"Partition {location.partition} of {location.model.name}"
    return LookupFailedError(FailureReason.NOT_READY, f"{where} {owner}, and no node that stores it answers.")
