"""The public keys of the issuer of signed tokens (JWKS): cached, and fetched again by a thread of its own.

No request fetches by itself. One with an unknown key id asks for a fetch, and waits for it briefly; fetches have a minimum interval,
and few requests wait, so requests without a valid token can occupy neither the issuer nor the node. While the issuer does not answer,
the keys known so far go on.
"""

import json
import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from include.errors import FoldlakeError

FETCH_TIMEOUT_S = 3.0
# Between two fetches that requests ask for.
MIN_INTERVAL_S = 5.0
# A key that the issuer has withdrawn is forgotten within this time.
MAX_AGE_S = 300.0
WAIT_S = 1.0
WAITING_REQUESTS = 8
MAX_BYTES = 1024 * 1024
MAX_KEYS = 100
# Of a key that verifies; a key for encryption has `enc`.
SIGNATURE_USES = frozenset({None, "sig"})
SECRET_KEY_TYPE = "oct"  # noqa: S105 - the name of a type

log = logging.getLogger(__name__)


class KeySetError(FoldlakeError):
    """The issuer's keys cannot be read."""


class VerifyingKey(NamedTuple):
    """A public key. algorithm: the only one for which it may be used; empty if its document names none."""

    public_key: Any
    algorithm: str


class KeySet:
    """The keys at a URL, https or a file. Thread-safe."""

    def __init__(
        self, url: str, min_interval_s: float = MIN_INTERVAL_S, max_age_s: float = MAX_AGE_S
    ) -> None:
        self._url = url
        self._min_interval_s = min_interval_s
        self._max_age_s = max_age_s
        self._keys: dict[str, VerifyingKey] = {}
        self._text = b""
        self._fetches = 0
        self._changed = threading.Condition()
        self._is_wanted = threading.Event()
        self._waiting = threading.BoundedSemaphore(WAITING_REQUESTS)

    def start(self) -> None:
        """Fetch the keys now and from time to time, in a thread."""
        threading.Thread(target=self._run, name="jwks", daemon=True).start()

    @property
    def current(self) -> Mapping[str, VerifyingKey]:
        """The keys by id; another object after a fetch that brings other keys. Empty before the first fetch."""
        return self._keys

    def find(self, key_id: str) -> VerifyingKey | None:
        """Return the key with this id; for an unknown id, after a fetch, if one is possible now. None if there is none."""
        found = self._keys.get(key_id)
        if found is not None or not self._waiting.acquire(blocking=False):
            return found
        try:
            with self._changed:
                fetches = self._fetches
                self._is_wanted.set()
                self._changed.wait_for(lambda: self._fetches > fetches or key_id in self._keys, WAIT_S)
        finally:
            self._waiting.release()
        return self._keys.get(key_id)

    def _run(self) -> None:
        while True:
            self.run_once()

    def run_once(self) -> None:
        """Fetch the keys, then wait until they may be fetched again, and until a request wants that or they are old."""
        self.fetch()
        time.sleep(self._min_interval_s)
        self._is_wanted.wait(self._max_age_s)

    def fetch(self) -> None:
        """Read the keys once; keep those of before if that fails."""
        self._is_wanted.clear()
        try:
            text = self._read()
            keys = parse_key_set(text)
        except KeySetError as error:
            log.warning("%s; the keys known so far stay valid", error)
            keys, text = self._keys, self._text
        with self._changed:
            if text != self._text:
                self._keys, self._text = keys, text
            self._fetches += 1
            self._changed.notify_all()

    def _read(self) -> bytes:
        parts = urlsplit(self._url)
        try:
            if parts.scheme == "file":
                return Path(url2pathname(parts.path)).read_bytes()
            # Redirects are not followed: they could lead to an unencrypted or an internal address.
            with httpx.Client(timeout=FETCH_TIMEOUT_S, follow_redirects=False) as client:
                return _received(client, self._url)
        except (OSError, httpx.HTTPError) as error:
            raise KeySetError(f"The keys of tokens at {self._url} cannot be read ({error})") from error


def _received(client: httpx.Client, url: str) -> bytes:
    """Return the body of a response, which may be neither slow nor large."""
    until = time.monotonic() + FETCH_TIMEOUT_S
    received = b""
    with client.stream("GET", url) as response:
        response.raise_for_status()
        for part in response.iter_bytes():
            received += part
            if len(received) > MAX_BYTES or time.monotonic() > until:
                raise httpx.DecodingError("the response is too large or too slow")
    return received


def parse_key_set(text: bytes) -> dict[str, VerifyingKey]:
    """Return the public keys of a JWKS document that verify signatures, by id; raises KeySetError.

    Omits secret keys, keys without an id, and types that are not known.
    """
    try:
        listed = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError) as error:
        raise KeySetError("The document with the keys of tokens is not a JWKS") from error
    keys = {}
    for entry in listed[:MAX_KEYS] if isinstance(listed, list) else ():
        if is_verifying(entry):
            try:
                keys[entry["kid"]] = VerifyingKey(PyJWK.from_dict(entry).key, entry.get("alg", ""))
            except PyJWTError as error:
                log.warning("the key %r of a JWKS is not used: %s", entry["kid"], error)
    if not keys:
        raise KeySetError("The document with the keys of tokens has no public key with an id")
    return keys


def is_verifying(entry: Any) -> bool:  # noqa: ANN401 - of a document that another program has written
    """Whether an entry of a JWKS describes a public key for signatures."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kid"), str)
        and entry.get("kty") != SECRET_KEY_TYPE
        and entry.get("use") in SIGNATURE_USES
    )
