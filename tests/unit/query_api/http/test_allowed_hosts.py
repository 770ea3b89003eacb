"""The hosts that the headers Host and Origin may name."""

import pytest

from include.errors import SettingsError
from include.settings import Settings
from query_api.http.request_checks import AllowedHosts


def hosts(**values: object) -> AllowedHosts:
    return AllowedHosts(Settings.of(**{f"node_{name}": value for name, value in values.items()}))


@pytest.mark.parametrize(
    ("host", "is_accepted"),
    [
        ("127.0.0.1:5051", True),
        ("localhost", True),
        ("localhost:8080", True),
        ("[::1]:5051", True),
        ("query-node-1:5051", True),
        ("QUERY-NODE-1:5051", True),
        ("query-node-1:5052", False),
        ("query-node-1", False),
        ("lookups.example", True),
        ("lookups.example:443", True),
        ("a.b.nodes.example", True),
        ("attacker.example", False),
        ("127.0.0.1.attacker.example", False),
        ("localhost.attacker.example", False),
        ("0.0.0.0:5051", False),
        ("127.0.0.1,attacker.example", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1:x", False),
        ("", False),
    ],
)
def test_loopback_the_own_url_and_listed_hosts_are_accepted(host: str, is_accepted: bool) -> None:
    allowed = hosts(url="http://query-node-1:5051", allowed_hosts="lookups.example,.nodes.example")

    assert allowed.accepts(host) == is_accepted


@pytest.mark.parametrize(
    ("origin", "is_accepted"),
    [
        ("http://127.0.0.1:5051", True),
        ("https://lookups.example", True),
        ("http://attacker.example", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("ftp://127.0.0.1", False),
        ("http://127.0.0.1:5051/path", False),
        ("http://127.0.0.1, http://attacker.example", False),
    ],
)
def test_an_origin_is_a_scheme_and_an_accepted_host(origin: str, is_accepted: bool) -> None:
    assert hosts(allowed_hosts="lookups.example").accepts_origin(origin) == is_accepted


def test_a_list_with_a_port_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_ALLOWED_HOSTS contains 'a\.example:80'"):
        hosts(allowed_hosts="a.example:80")
