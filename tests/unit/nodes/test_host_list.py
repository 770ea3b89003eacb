"""Hosts in their normal form, and lists of hosts from a setting."""

import pytest

from include.errors import SettingsError
from include.nodes.node_url import HostList, is_loopback, is_unspecified, normal_host


@pytest.mark.parametrize(
    ("host", "normal"),
    [
        ("localhost", "localhost"),
        ("LocalHost.", "localhost"),
        ("node-1.nodes.example", "node-1.nodes.example"),
        ("query_node_1", "query_node_1"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0::1]", "::1"),
        ("::1", None),
        ("[127.0.0.1]", None),
        ("[::ffff:127.0.0.1]", None),
        ("[fe80::1%eth0]", None),
        ("", None),
        ("0", None),
        ("0x7f000001", None),
        ("2130706433", None),
        ("127.1", None),
        ("0177.0.0.1", None),
        ("a.0x1", None),
        ("-a", None),
        ("a..b", None),
        ("a b", None),
        ("a\n", None),
        ("a" * 64, None),
        (".".join(["a" * 60] * 5), None),
    ],
)
def test_a_host_has_one_form(host: str, normal: str | None) -> None:
    assert normal_host(host) == normal


def test_loopback_is_this_machine() -> None:
    hosts = ["localhost", "127.0.0.1", "127.8.8.8", "::1"]

    assert [is_loopback(host) for host in hosts] == [True] * 4
    assert not any(is_loopback(host) for host in ["localhost.example", "128.0.0.1", "::2", "0.0.0.0"])


def test_an_unspecified_address_is_that_of_no_machine() -> None:
    assert [is_unspecified(host) for host in ["0.0.0.0", "::", "127.0.0.1", "a.example"]] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("host", "is_listed"),
    [
        ("query-node-1", True),
        ("query-node-2", False),
        ("a.nodes.example", True),
        ("nodes.example", False),
        ("othernodes.example", False),
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("192.168.1.5", True),
        ("192.168.1.6", False),
        ("fd00::5", True),
        ("fd01::5", False),
        ("fe80::1", True),
    ],
)
def test_a_list_has_names_domains_addresses_and_networks(host: str, is_listed: bool) -> None:
    entries = ("Query-Node-1", ".nodes.example", "10.0.0.0/8", "192.168.1.5", "fd00::/16", "[fe80::1]")

    assert (host in HostList.parse(entries, "VARIABLE")) == is_listed


@pytest.mark.parametrize("entry", ["a.example:80", "http://a.example", "10.0.0.0/33", "*", "."])
def test_an_entry_that_is_no_host_is_an_error(entry: str) -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_ALLOWED_HOSTS contains .*without ports"):
        HostList.parse(("a.example", entry), "FOLDLAKE_NODE_ALLOWED_HOSTS")
