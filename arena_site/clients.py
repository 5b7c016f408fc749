"""Who asks: the client behind the proxies that the settings trust."""

import logging
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from django.conf import settings

Address = IPv4Address | IPv6Address

SAME_CLIENT_IPV6 = 64
"""Leading bits that one subscriber's IPv6 addresses share: whoever has one of a /64 has all of them."""
UNKNOWN = "unknown"
log = logging.getLogger(__name__)


def client_address(meta: dict[str, Any]) -> Address | None:
    """The client's address out of a request's META: the last hop that is no trusted proxy.

    X-Forwarded-For counts only if the peer is trusted, and only as far as each hop that wrote it is: the rest is what
    a stranger said of himself. A peer without an address is a proxy at a Unix socket, so trusted if any proxy is.
    """
    text, header = meta.get("REMOTE_ADDR", ""), meta.get("HTTP_X_FORWARDED_FOR", "")
    peer = _address(text)
    if not _trusted(peer):
        if header and peer is not None and peer.is_private:
            _warn_of_proxy(str(peer))
        return peer
    client = peer
    for hop in reversed(header.split(",") if header else []):
        said = _address(hop)
        if said is None:
            break
        client = said
        if not _trusted(said):
            break
    return client


def client_key(meta: dict[str, Any]) -> str:
    """What limits count by: the IPv4 address, or the /64 that an IPv6 address is one of."""
    client = client_address(meta)
    if client is None:
        return UNKNOWN
    if isinstance(client, IPv6Address):
        return str(ip_network((client, SAME_CLIENT_IPV6), strict=False))
    return str(client)


def _address(text: str) -> Address | None:
    """An address as proxies write it: bare, in brackets, with a port; IPv4 inside IPv6 as IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _trusted(address: Address | None) -> bool:
    networks = _networks(tuple(settings.ARENA_TRUSTED_PROXIES))
    if address is None:
        return bool(networks)
    return any(address in network for network in networks)


@cache
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


@cache
def _warn_of_proxy(peer: str) -> None:
    """Once a process and proxy: its visitors share one limit until the settings name it."""
    log.warning("%s forwards for others, but ARENA_TRUSTED_PROXIES does not name it: it counts as one client", peer)
