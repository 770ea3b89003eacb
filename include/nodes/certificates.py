"""The deployment's own CA, and the certificates of its nodes and jobs, in the folder `tls` of the home.

Whoever has a certificate of the CA may use the nodes' listener for peers, so the CA issues nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, write_atomically
from include.nodes.peer_tls import CA, FOLDER, JOBS, TlsFiles, certificate_path, key_path
from include.settings import Settings

CA_DAYS, DAYS = 3650, 365
# From this time before its end on, a certificate has a warning.
WARNING_DAYS = 30
# Clocks of machines differ.
EARLIER = timedelta(minutes=10)
PUBLIC_FILE = 0o644
PRIVATE_FOLDER = 0o700
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class CertificateError(FoldlakeError):
    """A certificate cannot be read, or the CA that is needed for one is missing."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate says. name: of its file, without ending. hosts: names and addresses for which it is valid."""

    name: str
    path: Path
    subject: str
    hosts: tuple[str, ...]
    not_after: datetime

    @property
    def expires_in_s(self) -> float:
        """The time until its end; negative after that."""
        return (self.not_after - datetime.now(UTC)).total_seconds()

    @property
    def warning(self) -> str | None:
        """A sentence if it ends soon, or has ended."""
        days = self.expires_in_s / 86_400
        if days >= WARNING_DAYS:
            return None
        when = f"ends in {days:.0f} days" if days > 0 else "has ended"
        remedy = "./foldlake certificates renew" if self.path.parent.name == FOLDER else "renew it"
        return f"The certificate {self.path} {when}, on {self.not_after:%Y-%m-%d}: {remedy}."


def read_certificate(path: Path) -> Certificate:
    """Return the first certificate of a PEM file; raises CertificateError."""
    return _described(path, _load(path))


def read_all(files: Iterable[TlsFiles]) -> list[Certificate]:
    """Return the certificates, and those of the CAs, in these files, each once; omits files that cannot be read."""
    found = {}
    for path in [path for one in files for path in (one.certificate, one.ca) if path is not None]:
        try:
            found[path] = read_certificate(path)
        except CertificateError:
            continue
    return list(found.values())


def certificates_of(home: Path) -> list[Certificate]:
    """Return the certificates in a home: first the CA's; raises CertificateError for one that cannot be read."""
    paths = sorted(path for path in (home / FOLDER).glob("*.pem") if not path.stem.endswith("-key"))
    return [read_certificate(path) for path in sorted(paths, key=lambda path: path.stem != CA)]


def known_certificates(settings: Settings) -> list[Certificate]:
    """Return the certificates of the home, then others that the settings name; raises CertificateError for one of the home that cannot be read."""
    named = TlsFiles(settings.node_tls.ca_file, settings.node_tls.cert_file)
    others = read_all([TlsFiles(None, settings.tls.cert_file), named])
    return list({one.path: one for one in (*certificates_of(settings.home), *others)}.values())


def create(home: Path, nodes: Mapping[str, str]) -> list[Certificate]:
    """Create what is missing in the home: the CA, a certificate for jobs, and one for each node; returns what was created.

    nodes: name -> host at which others reach the node. A certificate for another host, and one that ends soon, are replaced.
    """
    folder = home / FOLDER
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    created = []
    if not certificate_path(home, CA).exists():
        _create_ca(home)
        created.append(CA)
    for name, hosts in {JOBS: (), **{name: (host,) for name, host in nodes.items()}}.items():
        path = certificate_path(home, name)
        if not path.exists() or not _is_good(read_certificate(path), hosts):
            _issue(home, name, hosts)
            created.append(name)
    return [read_certificate(certificate_path(home, name)) for name in created]


def _is_good(certificate: Certificate, hosts: tuple[str, ...]) -> bool:
    return set(hosts) <= set(certificate.hosts) and certificate.warning is None


def renew(home: Path) -> list[Certificate]:
    """Replace every certificate in the home but the CA's by one with the same hosts, and a new key; returns the new ones.

    Raises CertificateError if the home has no CA, or has one without its key.
    """
    present = [one for one in certificates_of(home) if one.name != CA]
    for one in present:
        _issue(home, one.name, one.hosts)
    return [read_certificate(one.path) for one in present]


def _create_ca(home: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named("CA")
    builder = _builder(subject, key.public_key(), CA_DAYS).issuer_name(subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(is_ca=True), critical=True)
    _write(home, CA, key, builder.sign(key, hashes.SHA256()))


def _issue(home: Path, name: str, hosts: Iterable[str]) -> None:
    """Write a certificate of the CA and its key: without hosts, one that is for clients only."""
    ca, path = _load(certificate_path(home, CA)), key_path(home, CA)
    try:
        ca_key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError) as error:
        raise CertificateError(f"The key of the CA, {path}, cannot be read: {error}.") from error
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)  # noqa: S101 - as created above
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), key.public_key(), DAYS).issuer_name(ca.subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(is_ca=False), critical=True)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    names = [_general_name(host) for host in hosts]
    purposes = [CLIENT, SERVER] if names else [CLIENT]
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _write(home, name, key, builder.sign(ca_key, hashes.SHA256()))


def _builder(subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Foldlake {name}"[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(home: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """Write the key, then the certificate. A process that finds only one of them replaced uses the former ones for a moment longer."""
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_atomically(key_path(home, name), key.private_bytes(pem, form, plain).decode(), mode=PRIVATE_FILE)
    write_atomically(certificate_path(home, name), certificate.public_bytes(pem).decode(), mode=PUBLIC_FILE)


def _load(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError) as error:
        raise CertificateError(f"The certificate {path} cannot be read: {error}.") from error


def _described(path: Path, certificate: x509.Certificate) -> Certificate:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [
            *names.get_values_for_type(x509.DNSName),
            *map(str, names.get_values_for_type(x509.IPAddress)),
        ]
    except x509.ExtensionNotFound:
        hosts = []
    subject = certificate.subject.rfc4514_string()
    return Certificate(path.stem, path, subject, tuple(hosts), certificate.not_valid_after_utc)
