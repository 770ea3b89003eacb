"""Verifies signed tokens (JWT): signature, issuer, audience and times; and finds the caller that a token names."""

import time
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

import jwt
from jwt.exceptions import ExpiredSignatureError, ImmatureSignatureError, PyJWTError

from include.access.caller import Caller, Scope
from include.settings import AuthSettings
from query_api.access.key_set import KeySet, VerifyingKey

# By how much the clocks of issuer and node may differ.
LEEWAY_S = 5
MAX_TOKEN_CHARACTERS = 8192
MAX_SUBJECT_CHARACTERS = 200
# Tokens that were verified and need not be again; each is about 300 bytes.
CACHED_TOKENS = 4096
REQUIRED = ["exp", "iss", "aud"]
# A scope may be given with the name of this product, since one issuer serves several.
SCOPE_PREFIX = "foldlake:"
# What reading a text of a stranger as a token can raise. RecursionError: JSON that is nested deeply.
NO_TOKEN = (PyJWTError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)


class TokenError(Exception):
    """A token is not accepted; the message says why, without the token."""


class NoSigningKeysError(TokenError):
    """The issuer's keys have not been fetched yet, so no token can be verified."""


class _Verified(NamedTuple):
    caller: Caller
    expires_s: float
    generation: int


class TokenVerifier:
    """Finds callers by their tokens. Thread-safe."""

    def __init__(self, settings: AuthSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys
        self._verified: dict[bytes, _Verified] = {}
        self._lock = Lock()

    def caller(self, token: str) -> Caller:
        """Return the caller whom a token names; raises TokenError."""
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
            raise TokenError("The token is too long, or not ASCII.")
        digest = sha256(token.encode()).digest()
        known = self._verified.get(digest)
        if known is not None and known.generation == self._keys.generation and time.time() < known.expires_s:
            return known.caller
        generation = self._keys.generation
        claims = self._claims(token)
        caller = self._caller_of(claims)
        with self._lock:
            self._verified.pop(digest, None)
            while len(self._verified) >= CACHED_TOKENS:
                del self._verified[next(iter(self._verified))]
            self._verified[digest] = _Verified(caller, float(claims["exp"]) + LEEWAY_S, generation)
        return caller

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
        if key is None and self._keys.is_empty:
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
