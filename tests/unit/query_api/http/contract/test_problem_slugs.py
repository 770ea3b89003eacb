"""Every problem slug in the code has a kind, which docs/reference/problems.md lists."""

import ast
from collections.abc import Iterator

import pytest

from include.settings import CHECKOUT
from query_api.http.problem_kinds import KINDS, kind_of
from query_api.lookup.lookup_results import FailureReason

NODE = sorted((CHECKOUT / "query_api").rglob("*.py"))
ACCESS = sorted((CHECKOUT / "include" / "access").glob("*.py"))
WINDOWS = [CHECKOUT / "include" / "declarations" / "windows.py"]
# Function -> which of its arguments is the slug.
SLUG_ARGUMENTS = {
    "ProblemError": 1,
    "busy_problem": 1,
    "_foreign": 0,
    "InvalidParameterError": 0,
    "AccessDeniedError": 0,
}
# Slugs that are made of a parameter's name -> the parameters.
FORMATTED = {
    "f'invalid-{name}'": ["from", "to", "partition", "limit", "key", "prefix", "snapshot"],
    "f'missing-{self._slug}'": [],
    "f'{self._slug}-too-long'": [],
    # Of `_foreign`, whose callers are found too, of the failure reasons, and of HTTP's own errors.
    "slug": [],
    "error.reason.slug": [],
    "error.slug": [],
    "slug if is_kind(slug, status) else HTTP_ERROR": [],
}


def slugs() -> Iterator[str]:
    for module in (*NODE, *ACCESS, *WINDOWS):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in SLUG_ARGUMENTS
            ):
                argument = node.args[SLUG_ARGUMENTS[node.func.id]]
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)
                else:
                    yield from (f"invalid-{name}" for name in FORMATTED[ast.unparse(argument)])
    yield from (reason.slug for reason in FailureReason)
    yield from (kind.slug for kind in KINDS if not kind.is_family)


@pytest.mark.parametrize("slug", sorted(set(slugs())))
def test_a_problem_has_a_kind(slug: str) -> None:
    assert kind_of(slug) is not None
