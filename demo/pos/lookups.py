"""Looks up the points of cards on a query node."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from http import HTTPStatus

import httpx

LOOKUP_TIMEOUT_S = 10.0
PARALLEL_LOOKUPS = 4

State = tuple[str, Decimal, Decimal, int, int]


def look_up_points(
    node: str, cards: Sequence[str], on_answer: Callable[[], None] = lambda: None
) -> list[State]:
    """Return card, points, amount spent, number of invoices and of cancellations of each card that the node answers for.

    Args:
        node: base URL of a query node.
        cards: numbers of cards.
        on_answer: called after each card.
    """
    with httpx.Client(base_url=node, timeout=LOOKUP_TIMEOUT_S, trust_env=False) as client:

        def look_up(card: str) -> State | None:
            try:
                answer = client.get("/api/loyalty.getPoints", params={"cardNumber": card})
            except httpx.HTTPError:
                return None
            finally:
                on_answer()
            if answer.status_code != HTTPStatus.OK:
                return None
            # Decimals are parsed from the text: points never pass through a float.
            state = json.loads(answer.text, parse_float=Decimal)
            return (
                card,
                Decimal(state["points"]),
                Decimal(state["spent"]),
                state["invoices"],
                state["cancellations"],
            )

        with ThreadPoolExecutor(PARALLEL_LOOKUPS) as pool:
            return [state for state in pool.map(look_up, cards) if state is not None]
