"""A list of hosts from a setting, and the hosts of one machine: `localhost` and the addresses of its loopback interface."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from include.errors import SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"{LABEL}(?:\.{LABEL})*")
# Resolvers read a name whose last part is a number as an address in a short form: `0` is 0.0.0.0.
ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
MAX_NAME_CHARACTERS = 253


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
