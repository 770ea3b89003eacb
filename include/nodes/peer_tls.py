"""TLS of the connections to query nodes: the trusted CAs, and the certificate with which a node or a job identifies itself.

The files are read again when they have changed, so a renewed certificate needs no restart.
"""

import logging
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from include.errors import SettingsError
from include.settings import Settings

VARIABLES = ("FOLDLAKE_NODE_TLS_CA_FILE", "FOLDLAKE_NODE_TLS_CERT_FILE", "FOLDLAKE_NODE_TLS_KEY_FILE")
# In the home: the folder of the certificates that `./foldlake certificates` creates, and the name of the one of jobs and commands.
FOLDER = "tls"
CA, JOBS = "ca", "jobs"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. ca: the trusted CAs; None: those of the system. certificate, key: of this process; None: it has none."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are set."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)


def signature_of(paths: Iterable[Path]) -> tuple[object, ...]:
    """Return a value that changes when one of these files is replaced or written."""
    return tuple(_identity(path) for path in paths)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class ClientTls:
    """The TLS of a client of query nodes. Thread-safe."""

    def __init__(self, files: TlsFiles | None = None) -> None:
        self.files = files or TlsFiles()
        self._reading = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._read: tuple[object, ...] | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection.

        While changed files cannot be read, because only one of them is replaced yet, it is the one before. Raises OSError if there is none.
        """
        now = signature_of(self.files.paths)
        if self._context is not None and now == self._read:
            return self._context
        with self._reading:
            try:
                self._context, self._read = self._load(), now
            except OSError as error:
                if self._context is None:
                    raise
                log.warning("changed certificates are not used yet: %s", error)
            return self._context

    def _load(self) -> ssl.SSLContext:
        files = self.files
        context = ssl.create_default_context(cafile=None if files.ca is None else str(files.ca))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if files.certificate is not None:
            context.load_cert_chain(files.certificate, files.key)
        return context


def certificate_path(home: Path, name: str) -> Path:
    """Return the file in a home with the certificate of a node, of JOBS, or of the CA."""
    return home / FOLDER / f"{name}.pem"


def key_path(home: Path, name: str) -> Path:
    """Return the file in a home with the key of a certificate."""
    return home / FOLDER / f"{name}-key.pem"


def node_tls_files(settings: Settings, name: str = JOBS) -> TlsFiles:
    """Return the files of this process for TLS between nodes.

    name: whose files in the home are used if the settings name none. Raises SettingsError if they name only some.
    """
    values = settings.node_tls.ca_file, settings.node_tls.cert_file, settings.node_tls.key_file
    if not settings.has_peer_listener:
        return TlsFiles(values[0])
    if not any(values):
        home = settings.home
        return TlsFiles(certificate_path(home, CA), certificate_path(home, name), key_path(home, name))
    if not all(values):
        missing = [variable for variable, value in zip(VARIABLES, values, strict=True) if not value]
        raise SettingsError(f"{', '.join(VARIABLES)} belong together: set {' and '.join(missing)} too.")
    return TlsFiles(*values)


def client_tls(settings: Settings) -> ClientTls:
    """Return the TLS with which this process reaches nodes; raises SettingsError."""
    return ClientTls(node_tls_files(settings))


def health_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context that accepts every certificate: only for questions to this machine whether a server is alive.

    The server's certificate is for the names at which callers reach it, which loopback is not. files: of the server. One with a CA
    requires a certificate of its clients, which is then the server's own. Raises OSError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if files.ca is not None and files.certificate is not None:
        context.load_cert_chain(files.certificate, files.key)
    return context
