"""Callers, their scopes, and the decision whether a caller may do what a request needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from include.errors import FoldlakeError

MAX_SHOWN = 100


class Scope(StrEnum):
    """What a caller may do. ADMIN includes the others; READ and WRITE do not include each other."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class AccessDeniedError(FoldlakeError):
    """A caller may not do what a request needs. slug: identifies the kind of refusal."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.slug = slug


@dataclass(frozen=True)
class Need:
    """What a request needs: a scope, on each of these read models; without read models, on the node as a whole."""

    scope: Scope
    read_models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Caller:
    """Who a request comes from.

    name: `key:<name of the key>`, `jwt:<subject>` or `node`. read_models: those to which the caller is limited; None: all.
    credential: the id of the key; empty for other credentials.
    """

    name: str
    scopes: frozenset[Scope]
    read_models: frozenset[str] | None = None
    credential: str = ""


# A node or a job of the same deployment, on the listener for nodes.
NODE = Caller("node", frozenset({Scope.ADMIN}))


def authorize(caller: Caller, need: Need) -> None:
    """Raise AccessDeniedError unless a caller may do what a request needs."""
    if need.scope not in caller.scopes and Scope.ADMIN not in caller.scopes:
        raise AccessDeniedError(
            "missing-scope",
            f"The request needs the scope {need.scope}; {_shown(caller.name)} has: {scopes_text(caller.scopes) or 'none'}.",
        )
    if caller.read_models is None:
        return
    if not need.read_models:
        raise AccessDeniedError(
            "read-model-not-allowed",
            f"The request concerns all read models; {_shown(caller.name)} is limited to some of them.",
        )
    for name in need.read_models:
        if name not in caller.read_models:
            raise AccessDeniedError(
                "read-model-not-allowed",
                f"The request concerns the read model {_shown(name)}, to which {_shown(caller.name)} has no access.",
            )


def scopes_text(scopes: Iterable[Scope]) -> str:
    """Return scopes as one text, in the order of their definition."""
    given = set(scopes)
    return ",".join(scope for scope in Scope if scope in given)


def parse_scopes(text: str) -> frozenset[Scope]:
    """Return the scopes of a text such as `read,write`; raises ValueError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = {scope.value for scope in Scope}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise ValueError(f"{text!r} names no scopes: use {', '.join(Scope)}, separated by commas")
    return frozenset(map(Scope, names))


def _shown(name: str) -> str:
    return repr(name[:MAX_SHOWN])
