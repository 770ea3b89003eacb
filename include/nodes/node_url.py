"""The URL of a query node: its form, its host, and the members of the group whose URLs a client accepts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from include.errors import SettingsError
from include.nodes.peer_tls import ClientTls, client_tls
from include.settings import Settings

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"{LABEL}(?:\.{LABEL})*")
# Resolvers read a name whose last part is a number as an address in a short form: `0` is 0.0.0.0.
ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
MAX_NAME_CHARACTERS = 253
# What may stand for a host in a URL or a Host header; `normal_host` decides whether it is one.
HOST = r"(?P<host>\[[0-9A-Fa-f:.]*\]|[\w.-]*)"
FORM = re.compile(rf"(?P<scheme>https?)://{HOST}(?::(?P<port>[0-9]{{1,5}}))?", re.ASCII)
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65535
PEER_HOSTS = "FOLDLAKE_NODE_PEER_HOSTS"


def normal_host(host: str) -> str | None:
    """Return a host name in lower case, or an IP address in its normal form without brackets; None if it is neither."""
    text = host.lower().removesuffix(".")
    if text.startswith("["):
        address = _address(text[1:-1]) if text.endswith("]") else None
        return str(address) if isinstance(address, IPv6Address) else None
    if isinstance(_address(text), IPv4Address):
        return text
    is_name = (
        len(text) <= MAX_NAME_CHARACTERS and NAME.fullmatch(text) and not ENDS_IN_A_NUMBER.fullmatch(text)
    )
    return text if is_name else None


def is_loopback(host: str) -> bool:
    """Whether a host, as `normal_host` returns it, is this machine and no other."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def is_unspecified(host: str) -> bool:
    """Whether a host, as `normal_host` returns it, stands for every address of a machine: a server can listen there, but not be reached."""
    address = _address(host)
    return address is not None and address.is_unspecified


@dataclass(frozen=True)
class HostList:
    """Hosts: names, domains with all of their names (`.nodes.example`), addresses and networks (`10.0.0.0/8`)."""

    names: frozenset[str] = frozenset()
    domains: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, entries: Iterable[str], variable: str) -> "HostList":
        """Return the list that a setting names; raises SettingsError with the name of its variable."""
        names, domains, networks = set(), [], []
        for entry in entries:
            network = _network(entry.strip("[]"))
            name = normal_host(entry.removeprefix("."))
            if network is not None:
                networks.append(network)
            elif name is None:
                raise SettingsError(
                    f"{variable} contains {entry!r}: list host names, domains with a leading dot, IP addresses or networks, "
                    "separated by commas and without ports."
                )
            elif entry.startswith("."):
                domains.append(f".{name}")
            else:
                names.add(name)
        return cls(frozenset(names), tuple(domains), tuple(networks))

    def __contains__(self, host: str) -> bool:
        """Whether the list has a host, given as `normal_host` returns it."""
        address = _address(host)
        if address is None:
            return host in self.names or host.endswith(self.domains)
        return any(address in network for network in self.networks)


def _address(text: str) -> Address | None:
    """Return an IP address, the inner one of an IPv4 address in IPv6's form; None for one with a zone, and for anything else."""
    try:
        address = ip_address(text) if "%" not in text else None
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class NodeUrl:
    """The parts of a node's URL; `host` as `normal_host` returns it."""

    host: str
    port: int
    scheme: str = "http"

    @classmethod
    def parse(cls, url: str) -> "NodeUrl":
        """Read the URL of a node; raises ValueError that says what is wrong with it."""
        matched = FORM.fullmatch(url)
        host = normal_host(matched["host"]) if matched else None
        scheme = matched["scheme"] if matched else "http"
        port = int(matched["port"] or DEFAULT_PORTS[scheme]) if matched else 0
        if host is None or not 0 < port <= MAX_PORT:
            raise ValueError("a node's URL has the form http://host:port or https://host:port")
        if is_unspecified(host):
            raise ValueError(f"no node can be reached at {host}")
        return cls(host, port, scheme)

    def at_port(self, port: int) -> str:
        """Return the URL of another node on the same host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


@dataclass(frozen=True)
class PeerRule:
    """Decides which members of the query nodes' group get requests, and how: whoever may join the group chooses the URL.

    hosts: the hosts that nodes may have; None: any. own_url: the URL of the node that asks, which may always be a member's.
    is_tls_only: whether nodes are reached by TLS only. tls: of the connections to them.
    """

    hosts: HostList | None = None
    own_url: str | None = None
    is_loopback_only: bool = False
    is_tls_only: bool = False
    tls: ClientTls = field(default_factory=ClientTls, compare=False)

    @classmethod
    def of_client(cls, settings: Settings) -> "PeerRule":
        """Return the rule of a client of the nodes that is no node itself; raises SettingsError."""
        return cls(_peer_hosts(settings), is_tls_only=settings.has_peer_listener, tls=client_tls(settings))

    @classmethod
    def of_node(cls, settings: Settings) -> "PeerRule":
        """Return the rule of a node: one on loopback has its peers there, because others could not reach it.

        Raises SettingsError.
        """
        rule = cls.of_client(settings)
        is_on_loopback = is_loopback(reachable_url(settings).host)
        return replace(
            rule,
            own_url=settings.advertised_url,
            is_loopback_only=rule.hosts is None and is_on_loopback,
        )

    def refusal(self, url: str) -> str | None:
        """Return why a member's URL is not followed, or None when it is."""
        if url == self.own_url:
            return None
        try:
            parsed = NodeUrl.parse(url)
        except ValueError as error:
            return str(error)
        host = parsed.host
        if self.is_tls_only and parsed.scheme != "https":
            return "it is not https, and FOLDLAKE_AUTH is set"
        if self.is_loopback_only and not is_loopback(host):
            return f"this node is on loopback, and {PEER_HOSTS} names no other host"
        if self.hosts is not None and host not in self.hosts:
            return f"{host} is not in {PEER_HOSTS}"
        return None


def reachable_url(settings: Settings) -> NodeUrl:
    """Return the parts of the URL at which callers reach a node; raises SettingsError when nobody could, or when it contradicts TLS."""
    node = settings.node
    try:
        found = NodeUrl.parse(settings.caller_url)
    except ValueError as error:
        if node.url:
            cause = f"FOLDLAKE_NODE_URL is {node.url!r}: {error}"
        else:
            cause = f"FOLDLAKE_NODE_BIND is {node.bind!r} and FOLDLAKE_NODE_URL is empty: {error}"
        raise SettingsError(
            f"{cause}. Set FOLDLAKE_NODE_URL to the URL at which other nodes reach this one."
        ) from error
    if settings.tls.cert_file and found.scheme != "https":
        raise SettingsError(
            f"FOLDLAKE_NODE_URL is {node.url!r}, and with FOLDLAKE_TLS_CERT_FILE the node accepts https only: write https://."
        )
    return found


def _peer_hosts(settings: Settings) -> HostList | None:
    hosts = settings.node.peer_hosts
    return HostList.parse(hosts, PEER_HOSTS) if hosts else None
