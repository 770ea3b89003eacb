"""An issuer of signed tokens: keys, tokens of every kind, and a server on loopback with the public keys."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://login.example/", "foldlake"


class Issuer:
    """Signs tokens with its newest key. requests: how often the public keys were read. status: with which they are answered."""

    def __init__(self) -> None:
        self.requests = 0
        self.status = 200
        self.url = ""
        self.published: list[dict[str, Any]] = []
        self._key_id = ""
        self._key: Any = None
        self._algorithm = ""
        self.rotate()

    def rotate(self, algorithm: str = "RS256") -> None:
        """Sign with a new key, which is published beside those of before."""
        self._algorithm = algorithm
        self._key_id = f"key-{len(self.published) + 1}"
        if algorithm.startswith("ES"):
            self._key = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        else:
            self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        self.published.append({**public, "kid": self._key_id, "alg": algorithm, "use": "sig"})

    @property
    def public_pem(self) -> bytes:
        """The newest public key as a text, which an attacker may use as a shared secret."""
        return self._key.public_key().public_bytes(  # type: ignore[no-any-return]  # of either kind of key
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def jwks(self) -> bytes:
        """The document with the public keys."""
        return json.dumps({"keys": self.published}).encode()

    def token(self, headers: dict[str, Any] | None = None, **claims: object) -> str:
        """Return a token; a claim that is None is left out."""
        now = time.time()
        given = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "alice",
            "iat": int(now),
            "exp": int(now) + 600,
            "scope": "read",
            **claims,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(chosen, self._key, self._algorithm, {"kid": self._key_id, **(headers or {})})


def encoded(text: bytes) -> str:
    """Return a part of a token."""
    return jwt.utils.base64url_encode(text).decode()


def unsigned(claims: dict[str, Any], header: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token with any header and any signature."""
    return ".".join(map(encoded, (json.dumps(header).encode(), json.dumps(claims).encode(), signature)))


@contextmanager
def serving(issuer: Issuer) -> Iterator[Issuer]:
    """Publish the issuer's keys at `url` on loopback during a block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.requests += 1
            body = issuer.jwks
            self.send_response(issuer.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    issuer.url = f"http://127.0.0.1:{server.server_port}/keys"
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
