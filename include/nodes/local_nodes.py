"""The query nodes on this machine, as jobs and commands reach them: with authentication, by mutual TLS on the listener for nodes."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from include.nodes.node_url import NodeUrl, reachable_url
from include.nodes.peer_tls import ClientTls, client_tls
from include.settings import Settings


@dataclass(frozen=True)
class NodeAddress:
    """Where jobs and commands reach a node, without an API key. tls: of the connections to it."""

    url: str
    tls: ClientTls = field(default_factory=ClientTls, compare=False)

    @property
    def name(self) -> str:
        """Host and port of the URL, for messages and tables."""
        return urlsplit(self.url).netloc

    def client(self, timeout_s: float) -> httpx.Client:
        """Return a client of the node; raises OSError if the certificates cannot be read."""
        verify = self.tls.context() if self.url.startswith("https:") else False
        return httpx.Client(base_url=self.url, timeout=timeout_s, trust_env=False, verify=verify)


def local_nodes(settings: Settings) -> tuple[NodeAddress, ...]:
    """Return the embedded nodes; raises SettingsError."""
    tls = client_tls(settings)
    return tuple(NodeAddress(url, tls) for url in local_node_urls(settings))


def local_node_urls(settings: Settings) -> tuple[str, ...]:
    """Return the URLs at which jobs on this machine reach the embedded nodes; raises SettingsError."""
    if not settings.has_peer_listener:
        return tuple(map(settings.loopback_url, settings.query_ports))
    reachable_url(settings)
    first = NodeUrl.parse(settings.advertised_url)
    return tuple(first.at_port(first.port + number) for number in range(len(settings.query_ports)))
