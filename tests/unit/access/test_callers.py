"""What a caller may do follows from its scopes and its read models."""

import pytest

from include.access.caller import NODE, AccessDeniedError, Caller, Need, Scope, authorize, parse_scopes

BALANCE, LOYALTY, NODE_WIDE = ("balance",), ("loyalty",), ()


def slug(caller: Caller, scope: Scope, read_models: tuple[str, ...]) -> str:
    """Return why a caller may not do something; empty if it may."""
    try:
        authorize(caller, Need(scope, read_models))
    except AccessDeniedError as error:
        return error.slug
    return ""


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ({Scope.READ}, {Scope.READ}),
        ({Scope.WRITE}, {Scope.WRITE}),
        ({Scope.ADMIN}, set(Scope)),
        (set(), set()),
    ],
)
def test_scopes_do_not_include_each_other_but_admin_includes_all(
    scopes: set[Scope], allowed: set[Scope]
) -> None:
    caller = Caller("key:a", frozenset(scopes))

    assert {scope for scope in Scope if not slug(caller, scope, BALANCE)} == allowed
    assert {slug(caller, scope, BALANCE) for scope in set(Scope) - allowed} <= {"missing-scope"}


@pytest.mark.parametrize("scopes", [{Scope.READ}, {Scope.ADMIN}])
def test_a_limited_caller_reads_its_read_models_and_nothing_of_the_whole_node(scopes: set[Scope]) -> None:
    caller = Caller("key:a", frozenset(scopes), frozenset(BALANCE))

    assert slug(caller, Scope.READ, BALANCE) == ""
    for read_models in (LOYALTY, BALANCE + LOYALTY, NODE_WIDE, ("Balance",), ("balance ",), ("",)):
        assert slug(caller, Scope.READ, read_models) == "read-model-not-allowed"


def test_a_limit_to_no_read_model_allows_none() -> None:
    assert slug(Caller("key:a", frozenset({Scope.READ}), frozenset()), Scope.READ, BALANCE)


def test_a_node_may_do_everything() -> None:
    assert {slug(NODE, scope, models) for scope in Scope for models in (BALANCE, NODE_WIDE)} == {""}


def test_scopes_are_read_from_a_text() -> None:
    assert parse_scopes(" read, write ") == {Scope.READ, Scope.WRITE}
    for text in ("", "all", "read,root", "READ"):
        with pytest.raises(ValueError, match="use read, write, admin"):
            parse_scopes(text)
