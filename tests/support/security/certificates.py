"""A certificate authority for the servers of a test, all on the loopback address: Foldlake's own CA, in a folder of its own."""

from pathlib import Path

from include.nodes.certificates import create
from include.nodes.peer_tls import CA, certificate_path, key_path

HOST = "127.0.0.1"
SUBJECT = "CN=Foldlake {}"


class Authority:
    """Issues certificates, as PEM files in a folder. ca_file: its own certificate, which clients trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca_file = certificate_path(folder, CA)
        create(folder, {})

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a server's or client's certificate and of its key, without a password."""
        create(self._folder, {name: HOST})
        return certificate_path(self._folder, name), key_path(self._folder, name)

    def principal(self, name: str) -> str:
        """Return the name that a broker gives to a client with this certificate."""
        return SUBJECT.format(name)
