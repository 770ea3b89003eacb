"""A server that speaks TLS with certificates that the tests have made, as a node's listener for peers does."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from socket import socket
from typing import Any
from unittest.mock import patch

from include.nodes import certificates
from include.nodes.peer_tls import CA, JOBS, TlsFiles, certificate_path, key_path
from tests.support.http.played_server import PlayedServer, serving

NODE, HOST = "node-1", "127.0.0.1"
NODES = {NODE: HOST}


def files_of(home: Path, name: str) -> TlsFiles:
    """Return the files in a home with the certificate of a node, or of jobs."""
    return TlsFiles(certificate_path(home, CA), certificate_path(home, name), key_path(home, name))


def made(home: Path, nodes: Mapping[str, str] = NODES) -> Path:
    """Make a CA with certificates in a folder, and return the folder."""
    certificates.create(home, nodes)
    return home


def expired(home: Path, name: str) -> None:
    """Replace a certificate by one that has ended yesterday."""
    (one,) = [one for one in certificates.certificates_of(home) if one.name == name]
    one.path.unlink()
    with patch.object(certificates, "DAYS", -1), patch.object(certificates, "EARLIER", timedelta(days=2)):
        certificates.create(home, {name: one.hosts[0]} if one.hosts else {})


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a server that requires a certificate of the CA."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files.ca))
    context.load_cert_chain(str(files.certificate), str(files.key))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsServer(PlayedServer):
    """A played server for clients with a certificate. clients: the subject of the client of each connection."""

    def __init__(self, files: TlsFiles) -> None:
        super().__init__()
        self.files = files
        self.clients: list[str] = []
        handler: Any = self.RequestHandlerClass
        self.RequestHandlerClass = type("Handler", (handler,), {"protocol_version": "HTTP/1.1"})

    @property
    def url(self) -> str:
        """The base URL."""
        return f"https://{HOST}:{self.server_port}"

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Do the handshake, then handle the requests of the connection."""
        context = server_context(self.files)
        with context.wrap_socket(request, server_side=True) as connection:
            subject = (connection.getpeercert() or {}).get("subject", ())
            self.clients.append(str(subject))
            handler: Any = self.RequestHandlerClass
            handler(connection, client_address, self)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the library's
        """Do nothing: the connection is closed already."""

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Ignore clients that are refused."""


@contextmanager
def tls_server(home: Path, name: str = NODE) -> Iterator[TlsServer]:
    """Run a server with a certificate of a home during a block."""
    with serving(TlsServer(files_of(home, name))) as server:
        yield server


def job_files(home: Path) -> TlsFiles:
    """Return the files of jobs in a home."""
    return files_of(home, JOBS)
