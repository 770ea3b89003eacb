"""The deployment's CA and the certificates of nodes and jobs: what they are valid for, who may read the keys, and their renewal."""

import stat
from pathlib import Path

import pytest
from cryptography import x509

from include.nodes.certificates import (
    CertificateError,
    certificates_of,
    create,
    read_all,
    read_certificate,
    renew,
)
from include.nodes.peer_tls import CA, JOBS, TlsFiles, certificate_path, key_path
from tests.support.http.tls_server import NODE, NODES, expired, files_of, made


def serial(path: Path) -> int:
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


def test_a_node_has_a_certificate_for_its_host_and_jobs_one_for_no_host(tmp_path: Path) -> None:
    created = create(tmp_path, {"node-1": "127.0.0.1", "node-2": "node-2.example"})

    assert {one.name: one.hosts for one in created} == {
        CA: (),
        JOBS: (),
        "node-1": ("127.0.0.1",),
        "node-2": ("node-2.example",),
    }
    assert [one.warning for one in created] == [None] * 4


def test_only_the_owner_can_read_keys(tmp_path: Path) -> None:
    made(tmp_path)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tls").glob("*-key.pem")}
    assert modes == {"ca-key.pem": 0o600, "jobs-key.pem": 0o600, "node-1-key.pem": 0o600}
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700


def test_what_exists_is_kept_and_a_node_with_another_host_gets_another_certificate(tmp_path: Path) -> None:
    made(tmp_path)

    assert create(tmp_path, NODES) == []
    assert [one.name for one in create(tmp_path, {NODE: "node-1.example"})] == [NODE]


def test_a_renewed_certificate_has_the_same_hosts_and_another_key(tmp_path: Path) -> None:
    path, ca = certificate_path(made(tmp_path), NODE), certificate_path(tmp_path, CA)
    before, key, ca_before = serial(path), key_path(tmp_path, NODE).read_bytes(), serial(ca)

    renewed = renew(tmp_path)

    assert {one.name: one.hosts for one in renewed} == {JOBS: (), NODE: ("127.0.0.1",)}
    assert serial(path) != before
    assert key_path(tmp_path, NODE).read_bytes() != key
    assert serial(ca) == ca_before


def test_a_certificate_that_ends_soon_is_replaced_at_the_next_start(tmp_path: Path) -> None:
    expired(made(tmp_path), NODE)

    (created,) = create(tmp_path, NODES)

    assert (created.name, created.warning) == (NODE, None)


def test_without_the_key_of_the_ca_nothing_is_renewed(tmp_path: Path) -> None:
    key_path(made(tmp_path), CA).unlink()

    with pytest.raises(CertificateError, match=r"The key of the CA, .*ca-key\.pem, cannot be read"):
        renew(tmp_path)


def test_a_certificate_that_has_ended_has_a_warning(tmp_path: Path) -> None:
    expired(made(tmp_path), NODE)

    found = read_certificate(certificate_path(tmp_path, NODE))

    assert found.expires_in_s < 0
    assert "has ended" in str(found.warning)
    assert "./foldlake certificates renew" in str(found.warning)


def test_what_is_no_certificate_is_named_or_omitted(tmp_path: Path) -> None:
    path = certificate_path(made(tmp_path), NODE)
    path.write_text("no certificate")

    with pytest.raises(CertificateError, match=f"The certificate {path} cannot be read"):
        certificates_of(tmp_path)
    assert [one.name for one in read_all([files_of(tmp_path, NODE), TlsFiles()])] == [CA]
