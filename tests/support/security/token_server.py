"""A server that issues tokens for client credentials, as an OpenID provider does, and the file of its public key."""

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.support.security.certificates import HOST

KEY_ID = "test"
LIFETIME_S = 3600


class TokenServer(ThreadingHTTPServer):
    """Issues a token in the client's name if its secret is right. key_file: the public key, as a JSON Web Key Set."""

    daemon_threads = True

    def __init__(self, key_file: Path, client_id: str, client_secret: str) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.key_file = key_file
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        key_file.write_text(json.dumps({"keys": [{**public, "kid": KEY_ID, "use": "sig", "alg": "RS256"}]}))
        self.client_id = client_id
        self.authorization = "Basic " + b64encode(f"{client_id}:{client_secret}".encode()).decode()
        super().__init__((HOST, 0), _Handler)

    @property
    def url(self) -> str:
        """The URL of tokens."""
        return f"http://{HOST}:{self.server_address[1]}/token"

    def token(self) -> str:
        """Return a new token."""
        now = int(time.time())
        claims = {"sub": self.client_id, "iat": now, "exp": now + LIFETIME_S, "scope": "kafka"}
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": KEY_ID})


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: TokenServer

    def do_POST(self) -> None:
        """Return a token, or 401."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_known = self.headers.get("Authorization") == self.server.authorization
        found = {"access_token": self.server.token(), "token_type": "Bearer", "expires_in": LIFETIME_S}
        content = json.dumps(found if is_known else {"error": "invalid_client"}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def token_server(key_file: Path, client_id: str, client_secret: str) -> Iterator[TokenServer]:
    """Run the server for the duration of the block."""
    with TokenServer(key_file, client_id, client_secret) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
