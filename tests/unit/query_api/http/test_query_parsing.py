"""What a request asks for: the fast path and Flask's route read a customer id alike."""

import pytest

from query_api.http.balance_lookup import customer_key, parameters
from query_api.http.fast_lookup import key_of
from query_api.http.problems import ProblemError
from query_api.lookup.position_bound import PositionBound

ALLOWED = frozenset({"customerId", "minOffset"})


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("customerId=7", b"7"),
        ("customerId=a%20b", b"a b"),
        ("customerId=%C3%A9", "é".encode()),
        ("customerId=a=b", b"a=b"),
        ("customerId=" + "x" * 256, b"x" * 256),
    ],
)
def test_plain_query_is_read_alike(query: str, key: bytes) -> None:
    assert key_of(query) == key == customer_key(parameters(query, ALLOWED)["customerId"])


@pytest.mark.parametrize(
    "query",
    [
        "",
        "customerId=",
        "customerId=a+b",
        "customerId=1&minOffset=2",
        "customerId=%ff",
        "x=1",
        "customerId=" + "x" * 257,
    ],
)
def test_anything_else_is_left_to_flask(query: str) -> None:
    assert key_of(query) is None


def test_plus_is_a_space() -> None:
    assert parameters("customerId=a+b&minOffset=3", ALLOWED) == {"customerId": "a b", "minOffset": "3"}


@pytest.mark.parametrize("query", ["customerId=1&customerId=2", "other=1", "customerId=%ff"])
def test_query_that_is_not_understood_is_refused(query: str) -> None:
    with pytest.raises(ProblemError) as refused:
        parameters(query, ALLOWED)
    assert refused.value.status == 400


def test_bound_is_met_at_its_offset() -> None:
    bound = PositionBound.parse("5")

    assert bound is not None
    assert [bound.is_met_by(offset) for offset in (4, 5, 6)] == [False, True, True]
    assert PositionBound.parse(None) is PositionBound.parse("") is None


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "\u0665", "9" * 20])
def test_bound_that_is_not_an_offset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="minOffset"):
        PositionBound.parse(text)
