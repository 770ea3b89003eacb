"""TLS in front of a real server that has none of its own, as a proxy such as stunnel adds it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
CHUNK_BYTES = 65_536


class _Proxy(ThreadingTCPServer):
    """Accepts TLS connections, and relays each to the server on `target`."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, target: int, context: ssl.SSLContext) -> None:
        self.target = target
        self.context = context
        super().__init__((HOST, 0), _Relay)


class _Relay(BaseRequestHandler):
    """Relays one connection."""

    server: _Proxy

    def handle(self) -> None:
        """Copy in both directions until one side has closed."""
        with (
            suppress(OSError),
            socket.create_connection((HOST, self.server.target)) as server,
            self.server.context.wrap_socket(self.request, server_side=True) as client,
        ):
            answers = threading.Thread(target=_copy, args=(server, client), daemon=True)
            answers.start()
            _copy(client, server)
            answers.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def tls_proxy(port: int, certificate: Path) -> Iterator[int]:
    """Relay TLS connections to the server on a port of this machine; yield the proxy's own port.

    certificate: where to write the proxy's certificate, which clients must trust.
    """
    with _Proxy(port, _context(certificate)) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield int(proxy.server_address[1])
        proxy.shutdown()


def _context(certificate: Path) -> ssl.SSLContext:
    """Return the context of a server with a new certificate for the loopback address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    both = certificate.with_suffix(".key")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, both)
    return context
