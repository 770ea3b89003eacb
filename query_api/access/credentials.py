"""Finds the caller whom a credential proves: an API key's secret, or a signed token."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import inf
from threading import Lock
from typing import NamedTuple

from include.access.api_key import ApiKey, find_key, is_api_key
from include.access.caller import Caller
from include.errors import FoldlakeError
from include.settings import Settings
from query_api.access.key_file import watch_keys
from query_api.access.key_set import KeySet
from query_api.access.token_verifier import NoSigningKeysError, TokenError, TokenVerifier
from query_api.shared_file import FileWatch

# Verified credentials that are remembered.
CACHED_CREDENTIALS = 1024


class CredentialError(FoldlakeError):
    """A credential is not accepted; the message says why, without the credential."""


class CredentialsUnavailableError(FoldlakeError):
    """This node cannot tell yet whether a credential is valid."""


class Verified(NamedTuple):
    """What a credential proves. until_s: Unix time. basis: the keys with which it was verified. keys: returns the present ones."""

    caller: Caller
    until_s: float
    basis: object
    keys: Callable[[], object]

    def is_valid(self) -> bool:
        """Whether it still proves that: it has not expired, and the keys have not changed, as by a revocation."""
        return self.keys() is self.basis and time.time() < self.until_s


class Credentials:
    """Finds callers. One per HTTP worker process; thread-safe.

    keys: those that the node knows; None if callers have none. tokens: likewise.
    """

    def __init__(self, keys: FileWatch[Mapping[str, ApiKey]] | None, tokens: TokenVerifier | None) -> None:
        self._keys = keys
        self._tokens = tokens
        self._verified: dict[str, Verified] = {}
        self._lock = Lock()

    @classmethod
    def of(cls, settings: Settings) -> "Credentials":
        """Return those that the settings accept; begins to fetch the public keys of tokens."""
        auth = settings.auth
        tokens = None
        if auth.accepts_tokens:
            key_set = KeySet(auth.jwt_jwks_url)
            key_set.start()
            tokens = TokenVerifier(auth, key_set)
        return cls(watch_keys(settings.store_dir) if auth.accepts_keys else None, tokens)

    def caller(self, credential: str) -> Caller:
        """Return the caller whom a credential proves; raises CredentialError, CredentialsUnavailableError."""
        return self.verified(credential).caller

    def verified(self, credential: str) -> Verified:
        """Return what a credential proves; raises CredentialError, CredentialsUnavailableError.

        What was verified before is not verified again while it is valid.
        """
        found = self._verified.get(credential)
        if found is not None and found.is_valid():
            return found
        keys = self._api_keys if is_api_key(credential) else self._token_keys
        # Before the verification: if the keys change meanwhile, the next request verifies again.
        basis = keys()
        found = Verified(*self._verify(credential), basis, keys)
        with self._lock:
            self._verified.pop(credential, None)
            while len(self._verified) >= CACHED_CREDENTIALS:
                del self._verified[next(iter(self._verified))]
            self._verified[credential] = found
        return found

    def _api_keys(self) -> object:
        return None if self._keys is None else self._keys.current()

    def _token_keys(self) -> object:
        return None if self._tokens is None else self._tokens.keys

    def _verify(self, credential: str) -> tuple[Caller, float]:
        """Return the caller, and the Unix time until which the credential is valid."""
        if is_api_key(credential):
            return self._caller_of_key(credential)
        if self._tokens is None:
            raise CredentialError("The credential is not an API key.")
        try:
            return self._tokens.verify(credential)
        except NoSigningKeysError as error:
            raise CredentialsUnavailableError(str(error)) from error
        except TokenError as error:
            raise CredentialError(str(error)) from error

    def _caller_of_key(self, secret: str) -> tuple[Caller, float]:
        if self._keys is None:
            raise CredentialError("This node accepts no API keys.")
        keys = self._keys.current()
        if keys is None:
            raise CredentialsUnavailableError("This node has not read the API keys yet.")
        key = find_key(keys, secret)
        if key is None:
            raise CredentialError("The API key is unknown.")
        if not key.is_valid(datetime.now(UTC)):
            state = "has been revoked" if key.revoked_at is not None else "has expired"
            raise CredentialError(f"The API key {state}.")
        return key.caller, inf if key.expires_at is None else key.expires_at.timestamp()
