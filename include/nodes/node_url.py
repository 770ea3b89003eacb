"""The URL of a query node: its form, and the members of the group whose URLs a client accepts."""

import re
from dataclasses import dataclass

from include.errors import SettingsError
from include.nodes.host_list import HostList, is_loopback, is_unspecified, normal_host
from include.settings import NodeSettings

# What may stand for a host in a URL or a Host header; `normal_host` decides whether it is one.
HOST = r"(?P<host>\[[0-9A-Fa-f:.]*\]|[\w.-]*)"
FORM = re.compile(rf"http://{HOST}(?::(?P<port>[0-9]{{1,5}}))?", re.ASCII)
DEFAULT_PORT = 80
MAX_PORT = 65535
PEER_HOSTS = "FOLDLAKE_NODE_PEER_HOSTS"


@dataclass(frozen=True)
class NodeUrl:
    """The parts of a node's URL; `host` as `normal_host` returns it."""

    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> "NodeUrl":
        """Read the URL of a node; raises ValueError that says what is wrong with it."""
        matched = FORM.fullmatch(url)
        host = normal_host(matched["host"]) if matched else None
        port = int(matched["port"] or DEFAULT_PORT) if matched else 0
        if host is None or not 0 < port <= MAX_PORT:
            raise ValueError("a node's URL has the form http://host:port")
        if is_unspecified(host):
            raise ValueError(f"no node can be reached at {host}")
        return cls(host, port)

    def at_port(self, port: int) -> str:
        """Return the URL of another node on the same host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"


@dataclass(frozen=True)
class PeerRule:
    """Decides which members of the query nodes' group get requests: whoever may join the group chooses the URL.

    hosts: the hosts that nodes may have; None: any. own_url: the URL of the node that asks, which may always be a member's.
    """

    hosts: HostList | None = None
    own_url: str | None = None
    is_loopback_only: bool = False

    @classmethod
    def of_client(cls, node: NodeSettings) -> "PeerRule":
        """Return the rule of a client of the nodes that is no node itself; raises SettingsError."""
        return cls(_peer_hosts(node))

    @classmethod
    def of_node(cls, node: NodeSettings) -> "PeerRule":
        """Return the rule of a node: one on loopback has its peers there, because others could not reach it.

        Raises SettingsError.
        """
        hosts = _peer_hosts(node)
        return cls(hosts, node.advertised_url, hosts is None and is_loopback(reachable_url(node).host))

    def refusal(self, url: str) -> str | None:
        """Return why a member's URL is not followed, or None when it is."""
        if url == self.own_url:
            return None
        try:
            host = NodeUrl.parse(url).host
        except ValueError as error:
            return str(error)
        if self.is_loopback_only and not is_loopback(host):
            return f"this node is on loopback, and {PEER_HOSTS} names no other host"
        if self.hosts is not None and host not in self.hosts:
            return f"{host} is not in {PEER_HOSTS}"
        return None


def reachable_url(node: NodeSettings) -> NodeUrl:
    """Return the parts of the URL that a node advertises; raises SettingsError when no other node could reach it there."""
    try:
        return NodeUrl.parse(node.advertised_url)
    except ValueError as error:
        if node.url:
            cause = f"FOLDLAKE_NODE_URL is {node.url!r}: {error}"
        else:
            cause = f"FOLDLAKE_NODE_BIND is {node.bind!r} and FOLDLAKE_NODE_URL is empty: {error}"
        raise SettingsError(
            f"{cause}. Set FOLDLAKE_NODE_URL to the URL at which other nodes reach this one."
        ) from error


def _peer_hosts(node: NodeSettings) -> HostList | None:
    return HostList.parse(node.peer_hosts, PEER_HOSTS) if node.peer_hosts else None
