"""Verifies signed tokens (JWT): signature, issuer, audience and times; and finds the caller that a token names."""

from typing import Any

import jwt
from jwt.exceptions import ExpiredSignatureError, ImmatureSignatureError, PyJWTError

from include.access.caller import Caller, Scope
from include.settings import AuthSettings
from query_api.access.key_set import KeySet, VerifyingKey

# By how much the clocks of issuer and node may differ.
LEEWAY_S = 5
MAX_TOKEN_CHARACTERS = 8192
MAX_SUBJECT_CHARACTERS = 200
REQUIRED = ["exp", "iss", "aud"]
# A scope may be given with the name of this product, since one issuer serves several.
SCOPE_PREFIX = "foldlake:"
# What reading a text of a stranger as a token can raise. RecursionError: JSON that is nested deeply.
NO_TOKEN = (PyJWTError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class TokenError(Exception):
    """A token is not accepted; the message says why, without the token."""


class NoSigningKeysError(TokenError):
    """The issuer's keys have not been fetched yet, so no token can be verified."""


class TokenVerifier:
    """Finds callers by their tokens. Thread-safe."""

    def __init__(self, settings: AuthSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys

    @property
    def keys(self) -> object:
        """The issuer's keys; another object once they have changed."""
        return self._keys.current

    def verify(self, token: str) -> tuple[Caller, float]:
        """Return the caller whom a token names, and the Unix time until which it is valid; raises TokenError."""
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
            raise TokenError("The token is too long, or not ASCII.")
        claims = self._claims(token)
        return self._caller_of(claims), float(claims["exp"]) + LEEWAY_S

    def _claims(self, token: str) -> dict[str, Any]:
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), header.get("kid")
            # Before the key is looked for: no token with another algorithm can cause a fetch.
            if algorithm not in settings.jwt_algorithms:
                raise TokenError("The token is signed with an algorithm that is not accepted.")
            key = self._key(key_id)
            return jwt.decode(
                token,
                key.public_key,
                algorithms=[key.algorithm or algorithm],
                issuer=settings.jwt_issuer,
                audience=settings.jwt_audience,
                leeway=LEEWAY_S,
                options={"require": REQUIRED, "enforce_minimum_key_length": True},
            )
        except ExpiredSignatureError as error:
            raise TokenError("The token has expired.") from error
        except ImmatureSignatureError as error:
            raise TokenError("The token is not valid yet.") from error
        except NO_TOKEN as error:
            raise TokenError("The token is not valid: check its signature, issuer and audience.") from error

    def _key(self, key_id: object) -> VerifyingKey:
        key = self._keys.find(key_id) if isinstance(key_id, str) else None
        if key is None and not self._keys.current:
            raise NoSigningKeysError("This node has not got the keys of tokens from their issuer yet.")
        if key is None:
            raise TokenError("The token's signing key is unknown.")
        return key

    def _caller_of(self, claims: dict[str, Any]) -> Caller:
        subject = claims.get("sub") or claims.get("client_id") or claims.get("azp")
        if not isinstance(subject, str) or len(subject) > MAX_SUBJECT_CHARACTERS:
            raise TokenError("The token names no subject.")
        return Caller(f"jwt:{subject}", scopes_of(claims.get(self._settings.jwt_scopes_claim)))


def scopes_of(claim: object) -> frozenset[Scope]:
    """Return the scopes of a claim, a text with spaces or a list; others than Foldlake's are ignored."""
    names = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else ()
    texts = {name.removeprefix(SCOPE_PREFIX) for name in names if isinstance(name, str)}
    return frozenset(scope for scope in Scope if scope.value in texts)
