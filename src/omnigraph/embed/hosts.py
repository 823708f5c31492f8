"""Which hosts and addresses a provider may have (security.md 2). Pure: resolves nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import InvalidRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class ProviderHosts:
    """What the operator of a server lists (`--provider-host`): names of hosts, addresses, networks of addresses."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> ProviderHosts:
        """Raises InvalidRequest (`invalid_setting`) for a text that is neither a name nor an address nor a network."""
        names: set[str] = set()
        networks: list[Network] = []
        for text in texts:
            host = text.strip().lower()
            try:
                networks.append(ipaddress.ip_network(host.strip("[]"), strict=False))
                continue
            except ValueError:  # no address, so a name
                pass
            if not is_host(host):
                raise InvalidRequest(
                    "a provider host is a name, an address or a network such as 10.1.0.0/16",
                    code="invalid_setting",
                    effects="none",
                )
            names.add(host)
        return cls(frozenset(names), tuple(networks))

    def lists(self, host: str) -> bool:
        """Whether an address in the configuration may name this host."""
        address = address_of(host)
        return host in self.names if address is None else self._lists_address(address)

    def admits(self, host: str, address: str) -> bool:
        """Whether `address`, to which `host` was resolved, may be connected to.

        Public ones may; others only if listed as such, so that a listed name can't be made to lead inside later. A name
        for this machine, listed, leads there.
        """
        found = address_of(address)
        if found is None:
            return False
        inner = _meant(found)
        if _is_public(inner) or self._lists_address(inner) or self._lists_address(found):
            return True
        return host in self.names and is_loopback(host) and inner.is_loopback

    def _lists_address(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self.networks)


def is_host(text: str) -> bool:
    """A name or an address as it stands in a URL, in lower case.

    >>> is_host("vectors.example"), is_host("::1"), is_host("a_b"), is_host("fe80::1%eth0")
    (True, True, False, False)
    """
    if ":" in text:
        return "%" not in text and address_of(text) is not None
    return _HOST.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether a host, as it stands in a URL, is this machine whatever a resolver says.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("localhost.example")
    (True, True, False)
    """
    address = address_of(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def address_of(text: str) -> Address | None:
    """The address that a text spells in the usual way; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:  # a name
        return None


def _meant(address: Address) -> Address:
    """The address that packets to this one end at, where it carries another inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast
