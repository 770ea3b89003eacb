"""The hosts at which clients may address this node, which protects it from the web pages that a browser on its network shows.

A page reaches a node through its visitor's browser, by a form or a script, or because the page's own host name resolves to the node's
address (DNS rebinding). The browser then names the page's host, not the node's, in the headers Origin or Host.
"""

import re
from functools import lru_cache

from include.nodes.host_list import HostList, is_loopback, normal_host
from include.nodes.node_url import DEFAULT_PORT, HOST, NodeUrl, reachable_url
from include.settings import NodeSettings

VARIABLE = "FOLDLAKE_NODE_ALLOWED_HOSTS"
AUTHORITY = re.compile(rf"{HOST}(?::(?P<port>[0-9]{{0,5}}))?", re.ASCII)
SCHEMES = frozenset({"http", "https"})
# Every lookup checks its Host; a node has few names.
CACHED_HOSTS = 64


class AllowedHosts:
    """Loopback with any port, the host and port of the node's URL, and the hosts that the setting lists, with any port.

    accepts: whether a Host header, `host` or `host:port`, names one of them.
    """

    def __init__(self, node: NodeSettings) -> None:
        """Read the settings; raises SettingsError."""
        self._own = reachable_url(node)
        self._listed = HostList.parse(node.allowed_hosts, VARIABLE)
        self.accepts = lru_cache(maxsize=CACHED_HOSTS)(self._accepts)

    def _accepts(self, authority: str) -> bool:
        matched = AUTHORITY.fullmatch(authority)
        host = normal_host(matched["host"]) if matched else None
        if matched is None or host is None:
            return False
        if is_loopback(host) or host in self._listed:
            return True
        return NodeUrl(host, int(matched["port"] or DEFAULT_PORT)) == self._own

    def accepts_origin(self, origin: str) -> bool:
        """Whether an Origin header names one of them; `null`, that of a page without an origin, does not."""
        scheme, _, authority = origin.partition("://")
        return scheme in SCHEMES and self.accepts(authority)
