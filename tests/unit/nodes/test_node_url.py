"""URLs of nodes: their form, the node's own, and those of other members of the group."""

import pytest

from include.errors import SettingsError
from include.nodes.local_nodes import local_node_urls
from include.nodes.node_url import (
    HostList,
    NodeUrl,
    PeerRule,
    is_loopback,
    is_unspecified,
    normal_host,
    reachable_url,
)
from include.settings import Settings

PRIVATE = "10.0.0.7"


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


def node(**values: object) -> Settings:
    return Settings.of(**{f"node_{name}": value for name, value in values.items()})


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://query-node-1:5051", "query-node-1", 5051),
        (f"http://{PRIVATE}", PRIVATE, 80),
        ("http://[fd00::1]:5051", "fd00::1", 5051),
    ],
)
def test_a_url_has_a_host_and_a_port(url: str, host: str, port: int) -> None:
    assert NodeUrl.parse(url) == NodeUrl(host, port)


def test_a_url_has_a_scheme() -> None:
    assert NodeUrl.parse("https://node-1:5051") == NodeUrl("node-1", 5051, "https")
    assert NodeUrl.parse("https://node-1").at_port(5152) == "https://node-1:5152"
    assert NodeUrl.parse("https://node-1").port == 443


@pytest.mark.parametrize(
    "url",
    [
        "",
        "node-1",
        "ftp://node-1:5051",
        "HTTPS://node-1:5051",
        "http://node-1:5051/",
        "http://node-1:5051/path",
        "http://node-1:5051?query",
        "http://user@node-1:5051",
        "http://node-1:0",
        "http://node-1:65536",
        "http://node-1:",
        "http://:5051",
        "http://node-1:5051\r\nHeader: value",
        "http://node-1\n:5051",
        *(f"http://{host}:5051" for host in ("0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "0", "00.0.0.0")),
    ],
)
def test_any_other_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"a node's URL has the form|no node can be reached"):
        NodeUrl.parse(url)
    assert PeerRule().refusal(url) is not None


def test_a_node_on_loopback_accepts_only_nodes_on_loopback() -> None:
    rule = PeerRule.of_node(node())

    assert rule.refusal("http://127.0.0.1:5052") is None
    assert rule.refusal("http://localhost:5052") is None
    assert "FOLDLAKE_NODE_PEER_HOSTS" in str(rule.refusal(f"http://{PRIVATE}:5051"))


def test_a_node_elsewhere_accepts_every_host_unless_they_are_listed() -> None:
    url = "http://query-node-1:5051"

    anywhere = PeerRule.of_node(node(url=url))
    listed = PeerRule.of_node(node(url=url, peer_hosts="query-node-2, 10.0.0.0/8"))

    assert anywhere.refusal("http://attacker.example:80") is None
    assert listed.refusal("http://query-node-2:5052") is None
    assert listed.refusal(f"http://{PRIVATE}:5051") is None
    assert listed.refusal("http://attacker.example:80") == (
        "attacker.example is not in FOLDLAKE_NODE_PEER_HOSTS"
    )
    assert listed.refusal(url) is None, "the node's own URL need not be listed"


def test_a_client_of_the_nodes_accepts_the_listed_hosts_or_any() -> None:
    assert PeerRule.of_client(node()).refusal("http://query-node-1:5051") is None
    assert PeerRule.of_client(node(peer_hosts="a.example")).refusal("http://query-node-1:5051") is not None


@pytest.mark.parametrize("bind", ["0.0.0.0", "::"])
def test_a_node_bound_to_every_address_needs_a_url(bind: str) -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_BIND is .* Set FOLDLAKE_NODE_URL to the URL"):
        reachable_url(node(bind=bind))

    assert reachable_url(node(bind=bind, url="http://node-1:5051")) == NodeUrl("node-1", 5051)


def test_a_url_that_no_node_can_have_is_an_error() -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_NODE_URL is 'node-1:5051': a node's URL has the form"):
        reachable_url(node(url="node-1:5051"))


def test_a_node_bound_to_one_address_is_reached_there() -> None:
    assert reachable_url(node(bind="fd00::1")) == NodeUrl("fd00::1", 5051)
    assert reachable_url(node(bind="10.0.0.7", port=6000)) == NodeUrl("10.0.0.7", 6000)


def test_with_authentication_a_node_is_reached_by_tls_on_the_port_for_peers() -> None:
    open_node = node(bind="0.0.0.0", url="https://node-1.example")
    secured = open_node.changed(auth="keys", node_peer_port=5160)

    assert open_node.advertised_url == "https://node-1.example"
    assert secured.caller_url == "https://node-1.example"
    assert secured.advertised_url == "https://node-1.example:5160"
    assert node(bind="fd00::1").changed(auth="keys").advertised_url == "https://[fd00::1]:5151"


def test_with_authentication_no_node_is_followed_without_tls() -> None:
    rule = PeerRule.of_node(node().changed(auth="keys"))

    assert rule.refusal("https://127.0.0.1:5152") is None
    assert rule.refusal("http://127.0.0.1:5052") == "it is not https, and FOLDLAKE_AUTH is set"


def test_jobs_on_this_machine_reach_the_embedded_nodes() -> None:
    settings = Settings.of(query_ports=(5051, 5052))

    assert local_node_urls(settings) == ("http://127.0.0.1:5051", "http://127.0.0.1:5052")
    assert local_node_urls(settings.changed(tls_cert_file="/cert"))[0] == "https://127.0.0.1:5051"
    assert local_node_urls(settings.changed(auth="keys")) == (
        "https://127.0.0.1:5151",
        "https://127.0.0.1:5152",
    )


def test_the_url_of_a_node_with_tls_for_callers_is_https() -> None:
    assert node().changed(tls_cert_file="/cert").caller_url == "https://127.0.0.1:5051"
    with pytest.raises(SettingsError, match="the node accepts https only: write https"):
        reachable_url(node(url="http://node-1:5051").changed(tls_cert_file="/cert"))
