"""The two listeners of a node, each a server of its own.

That for callers, and that for other nodes and jobs: it exists unless FOLDLAKE_AUTH is none, and requires a certificate of the deployment's CA.
"""

import os
import ssl
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from include.errors import SettingsError
from include.nodes.node_url import is_loopback, normal_host
from include.nodes.peer_tls import TlsFiles, node_tls_files
from include.settings import Settings

if TYPE_CHECKING:
    from include.nodes.certificates import Certificate

VARIABLE = "FOLDLAKE_STACK_LISTENER"


class Role(StrEnum):
    """Who sends requests to a listener."""

    CALLERS = "callers"
    PEERS = "peers"

    @classmethod
    def of_environment(cls) -> Self:
        """Return the role of the listener of this process."""
        return cls(os.environ.get(VARIABLE, cls.CALLERS))


@dataclass(frozen=True)
class Listener:
    """One listener of a node. name: of its process. files: of its TLS; None: plain HTTP."""

    role: Role
    name: str
    port: int
    workers: int
    files: TlsFiles | None

    def tls_options(self) -> dict[str, Any]:
        """Return the options of granian's server; raises SettingsError for files that cannot be used."""
        # Commands that only look at the processes of nodes need neither the server nor the library.
        from granian.constants import SSLProtocols  # noqa: PLC0415

        if self.files is None:
            return {}
        require_usable(self.files)
        options: dict[str, Any] = {"ssl_cert": self.files.certificate, "ssl_key": self.files.key}
        if self.role is Role.CALLERS:
            return options | {"ssl_protocol_min": SSLProtocols.tls12}
        return options | {
            "ssl_protocol_min": SSLProtocols.tls13,
            "ssl_ca": self.files.ca,
            "ssl_client_verify": True,
        }


def listener_of(settings: Settings, role: Role) -> Listener:
    """Return the listener of a node; raises SettingsError."""
    node = settings.node
    if role is Role.CALLERS:
        return Listener(role, f"{node.name} http", node.port, node.http_workers, caller_files(settings))
    if not settings.has_peer_listener:
        raise SettingsError("There is no listener for other nodes, because FOLDLAKE_AUTH is none.")
    files = node_tls_files(settings, node.name)
    return Listener(role, f"{node.name} peers", node.peer_port, node.peer_workers, files)


def caller_files(settings: Settings) -> TlsFiles | None:
    """Return the files of TLS for callers; None: they use plain HTTP. Raises SettingsError if only one is set."""
    certificate, key = settings.tls.cert_file, settings.tls.key_file
    if bool(certificate) != bool(key):
        raise SettingsError("FOLDLAKE_TLS_CERT_FILE and FOLDLAKE_TLS_KEY_FILE belong together: set both.")
    return TlsFiles(None, certificate, key) if certificate else None


def served_certificates(settings: Settings) -> "list[Certificate]":
    """Return the certificates of both listeners, and the CAs' that the one for peers trusts; omits those that cannot be read."""
    from include.nodes.certificates import read_all  # noqa: PLC0415 - as above

    found = []
    if (files := caller_files(settings)) is not None:
        found.append(files)
    if settings.has_peer_listener:
        found.append(node_tls_files(settings, settings.node.name))
    return read_all(found)


def require_usable(files: TlsFiles) -> None:
    """Raise SettingsError if the server could not start with these files: it would end with the error of a library."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names = f"the certificate {files.certificate} with the key {files.key}"
    try:
        # Without a password, the library would wait for one on the terminal.
        context.load_cert_chain(str(files.certificate), str(files.key), password=lambda: "")
        if files.ca is not None:
            names = f"the CA {files.ca}"
            context.load_verify_locations(files.ca)
    except OSError as error:
        raise SettingsError(
            f"The server cannot use {names}: {error}. They must be PEM files, the key without a password."
        ) from error


def require_protection(settings: Settings) -> str:
    """Return a warning for a node that anybody on its network may use as its settings allow; empty for any other node.

    Raises SettingsError for one whose settings do not allow it.
    """
    bind = settings.node.bind
    host = normal_host(f"[{bind}]" if ":" in bind else bind)
    if settings.auth.is_on or (host is not None and is_loopback(host)):
        return ""
    risk = f"FOLDLAKE_NODE_BIND is {bind!r} and FOLDLAKE_AUTH is none: every client that reaches the node may read and write"
    if not settings.auth.allow_open:
        raise SettingsError(
            f"{risk}. Set FOLDLAKE_AUTH=keys and create a key, as docs/security.md describes; or FOLDLAKE_ALLOW_OPEN=yes, on a network "
            "that you trust."
        )
    return f"{risk}. FOLDLAKE_ALLOW_OPEN allows that: see docs/security.md."
