"""Query parsing: the fast path and the full parser return the same key."""

import pytest

from include.declarations.load import load_catalog
from query_api.http.lookups.named_lookups import CompiledLookup
from query_api.http.problems import ProblemError
from query_api.http.request_parameters import parameters
from query_api.lookup.position_bound import PositionBound

(BALANCE,) = (api for api in load_catalog().apis if api.model.name == "balance")
LOOKUP = CompiledLookup(BALANCE.model, BALANCE.lookups[0])
ALLOWED = LOOKUP.parameters


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
def test_plain_query_is_parsed_alike(query: str, key: bytes) -> None:
    assert LOOKUP.plain_key(query) == key == LOOKUP.key(parameters(query, ALLOWED))


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
def test_anything_else_is_not_plain(query: str) -> None:
    assert LOOKUP.plain_key(query) is None


def test_plus_is_a_space() -> None:
    assert parameters("customerId=a+b&minOffset=3", ALLOWED) == {"customerId": "a b", "minOffset": "3"}


@pytest.mark.parametrize("query", ["customerId=1&customerId=2", "other=1", "customerId=%ff"])
def test_invalid_query_is_rejected(query: str) -> None:
    with pytest.raises(ProblemError) as refused:
        parameters(query, ALLOWED)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({}, "missing-customer-id"),
        ({"customerId": ""}, "missing-customer-id"),
        ({"customerId": "é" * 129}, "customer-id-too-long"),
    ],
)
def test_problem_is_named_after_the_parameter(given: dict[str, str], slug: str) -> None:
    with pytest.raises(ProblemError) as refused:
        LOOKUP.key(given)
    assert refused.value.slug == slug


def test_lookup_is_proxied_unchanged() -> None:
    given = parameters("customerId=a+b%26&minOffset=3", ALLOWED)

    assert LOOKUP.target(given) == "/api/customers.getBalance?customerId=a%20b%26&minOffset=3"
    assert parameters(LOOKUP.target(given).partition("?")[2], ALLOWED) == given


def test_bound_is_met_at_its_offset() -> None:
    bound = PositionBound.parse("5")

    assert bound is not None
    assert [bound.is_met_by(offset) for offset in (4, 5, 6)] == [False, True, True]
    assert PositionBound.parse(None) is PositionBound.parse("") is None


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "\u0665", "9" * 20])
def test_bound_that_is_not_an_offset_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="minOffset"):
        PositionBound.parse(text)
