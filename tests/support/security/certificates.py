"""A certificate authority for the servers of a test, all on the loopback address."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
VALID_FOR = timedelta(hours=2)


class Authority:
    """Issues certificates, as PEM files in a folder. ca_file: its own certificate, which clients trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Foldlake's test authority")
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(_pem(self._signed(self._name, self._key.public_key(), is_authority=True)))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a new server's or client's certificate and of its key, without a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, private = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(_pem(self._signed(_name(name), key.public_key(), is_authority=False)))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, private

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
