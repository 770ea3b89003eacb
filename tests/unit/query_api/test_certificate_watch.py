"""A changed certificate replaces the server once both files fit together; files that the server cannot use are named."""

from pathlib import Path

import pytest

from include.errors import SettingsError
from include.nodes.certificates import renew
from include.nodes.peer_tls import TlsFiles, certificate_path, key_path
from include.settings import Settings
from query_api.certificate_watch import CertificateWatch
from query_api.listener import Role, listener_of, require_usable, served_certificates
from tests.support.http.tls_server import NODE, files_of, made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with certificates."""
    return made(tmp_path)


def looks(watch: CertificateWatch, count: int) -> list[bool]:
    """Look this often, and return at which looks the server was replaced."""
    replaced: list[int] = []
    found = [watch.look(lambda: replaced.append(1)) for _ in range(count)]
    assert found.count(True) == len(replaced)
    return found


def watching(home: Path, *, is_final: bool = False) -> CertificateWatch:
    return CertificateWatch(files_of(home, NODE), is_final=is_final)


def test_a_renewed_certificate_replaces_the_server_until_it_has_ended(home: Path) -> None:
    watch = watching(home)
    assert looks(watch, 1) == [False]

    renew(home)

    assert looks(watch, 3) == [False, True, True], "the first look may find half of the files"


def test_new_workers_are_started_once(home: Path) -> None:
    watch = watching(home, is_final=True)

    renew(home)

    assert looks(watch, 3) == [False, True, False]


def test_files_that_do_not_fit_together_replace_nothing(home: Path) -> None:
    watch = watching(home)

    key_path(home, NODE).write_bytes(key_path(home, "jobs").read_bytes())

    assert looks(watch, 3) == [False] * 3


def secured(home: Path, **values: object) -> Settings:
    return Settings.of(home=home, auth="keys", **values)


def test_the_listener_for_peers_requires_a_certificate_and_tls_1_3(home: Path) -> None:
    listener = listener_of(secured(home), Role.PEERS)
    options = listener.tls_options()

    assert (listener.name, listener.port, listener.workers) == ("node-1 peers", 5151, 1)
    assert options["ssl_client_verify"] is True
    assert str(options["ssl_protocol_min"]) == "tls1.3"
    assert options["ssl_ca"] == certificate_path(home, "ca")


def test_callers_need_no_certificate(home: Path) -> None:
    files = {"tls_cert_file": certificate_path(home, NODE), "tls_key_file": key_path(home, NODE)}

    assert listener_of(secured(home), Role.CALLERS).tls_options() == {}
    options = listener_of(secured(home, **files), Role.CALLERS).tls_options()

    assert "ssl_client_verify" not in options
    assert str(options["ssl_protocol_min"]) == "tls1.2"


def test_without_authentication_there_is_no_listener_for_peers(home: Path) -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_AUTH is none"):
        listener_of(Settings.of(home=home), Role.PEERS)


def test_a_certificate_without_a_key_is_an_error(home: Path) -> None:
    with pytest.raises(SettingsError, match="belong together: set both"):
        listener_of(Settings.of(tls_cert_file=certificate_path(home, NODE)), Role.CALLERS)


@pytest.mark.parametrize("name", ["certificate", "key", "ca"])
def test_a_file_that_the_server_cannot_use_is_named(home: Path, name: str) -> None:
    path = getattr(files_of(home, NODE), name)
    path.write_text("nothing")

    with pytest.raises(SettingsError, match=f"cannot use .*{path}"):
        require_usable(files_of(home, NODE))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        require_usable(TlsFiles(None, tmp_path / "a", tmp_path / "b"))


def test_metrics_have_the_certificates_of_both_listeners(home: Path) -> None:
    files = {"tls_cert_file": certificate_path(home, "jobs"), "tls_key_file": key_path(home, "jobs")}

    assert served_certificates(Settings.of(home=home)) == []
    assert {one.name for one in served_certificates(secured(home, **files))} == {"jobs", NODE, "ca"}
