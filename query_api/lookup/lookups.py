"""Answering by key on any node: from the own store where the key's partition is owned here, else by asking the owner."""

from http import HTTPStatus

from include.nodes.peers import (
    ANSWER_TIMEOUT_S,
    HOP_ANY,
    HOP_OWNER,
    REASON_HEADER,
    PeerDownError,
    PeerResponse,
    Peers,
)
from query_api.lookup.local_lookup import KeyLocation, LocalAnswer, LocalLookup
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.lookup.position_bound import MAX_WAIT_S, PositionBound
from query_api.lookup.routing import candidates

# With these, another node may still have the answer.
TRY_ELSEWHERE = frozenset({FailureReason.NOT_OWNER, FailureReason.NOT_READY})
_TRY_ELSEWHERE_SLUGS = frozenset(reason.slug for reason in TRY_ELSEWHERE)


class Lookups:
    """The routing of lookups. One for each HTTP worker process; safe for use by several threads."""

    def __init__(self, local: LocalLookup, peers: Peers) -> None:
        self.local = local
        self.peers = peers

    def answer(
        self, place: KeyLocation, target: str, hop: str | None, bound: PositionBound | None = None
    ) -> LocalAnswer | PeerResponse:
        """Return the answer for a key; `target` is the path and query under which another node gives it.

        hop: the hop header of the request. A request that carries one is answered here or not at all, so that none
            goes round.
        Raises LookupFailedError.
        """
        if hop == HOP_OWNER and not place.is_owned_here:
            detail = f"{self.local.node_name} does not own partition {place.partition} of {place.model.name}."
            raise LookupFailedError(FailureReason.NOT_OWNER, detail)
        if hop is not None:
            return self.local.find(place, bound)
        return self._first_answer(place, target, bound)

    def _first_answer(
        self, place: KeyLocation, target: str, bound: PositionBound | None
    ) -> LocalAnswer | PeerResponse:
        """Ask the owner, then its standbys, then anyone else; raises what this node itself had to say."""
        failure: LookupFailedError | None = None
        nodes = {*place.state.nodes, place.state.url}
        for url in candidates(place.owner, place.model.standbys.get(place.partition, ()), nodes):
            if url != place.state.url:
                response = self._ask(url, place, target, bound)
                if response is not None:
                    return response
                continue
            try:
                return self.local.find(place, bound)
            except LookupFailedError as error:
                if error.reason not in TRY_ELSEWHERE:
                    raise
                # Not the error itself: its traceback would keep the store open that it tells of.
                failure = LookupFailedError(error.reason, error.detail)
        if failure is not None and place.is_owned_here:
            raise failure
        owner = place.owner or "nobody yet"
        detail = f"Partition {place.partition} of {place.model.name} is owned by {owner}, and no holder of it answers."
        raise LookupFailedError(FailureReason.NOT_READY, detail)

    def _ask(
        self, url: str, place: KeyLocation, target: str, bound: PositionBound | None
    ) -> PeerResponse | None:
        """Return another node's answer, or None when it has none and someone else may."""
        peer = self.peers.at(url)
        if peer.is_down:
            return None
        timeout_s = ANSWER_TIMEOUT_S + (MAX_WAIT_S if bound else 0.0)
        try:
            response = peer.get(target, HOP_OWNER if url == place.owner else HOP_ANY, timeout_s)
        except PeerDownError:
            return None
        reason = response.headers.get(REASON_HEADER.lower())
        if reason in _TRY_ELSEWHERE_SLUGS or (
            response.status >= HTTPStatus.INTERNAL_SERVER_ERROR and reason is None
        ):
            return None
        return response
