"""The client's address, as seen through trusted proxies."""

import logging
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings

Address = IPv4Address | IPv6Address

SAME_CLIENT_IPV6 = 64
"""Leading bits that one subscriber's IPv6 addresses share."""
UNKNOWN = "unknown"
log = logging.getLogger(__name__)


def client_address(meta: dict[str, Any]) -> Address | None:
    """The client's address out of a request's META: the last hop that is no trusted proxy.

    X-Forwarded-For is read from the right and only as far as its hops are trusted, since a client can send anything
    before them. A peer without an address is a proxy at a Unix socket, so trusted if any proxy is.
    """
    text, header = meta.get("REMOTE_ADDR", ""), meta.get("HTTP_X_FORWARDED_FOR", "")
    peer = _address(text)
    if not _trusted(peer):
        if header and peer is not None and peer.is_private:
            _warn_of_proxy(str(peer))
        return peer
    client = peer
    for hop in reversed(header.split(",") if header else []):
        address = _address(hop)
        if address is None:
            break
        client = address
        if not _trusted(address):
            break
    return client


def client_key(meta: dict[str, Any]) -> str:
    """The key of rate limits: the IPv4 address, or the /64 network of an IPv6 address."""
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
    if address is None:
        return bool(settings.ARENA_TRUSTED_PROXIES)
    return any(address in network for network in settings.ARENA_TRUSTED_PROXIES)


@cache
def _warn_of_proxy(peer: str) -> None:
    """Warns once per process and proxy, whose visitors share one limit until the settings name it."""
    log.warning("%s forwards for others, but ARENA_TRUSTED_PROXIES does not name it: it counts as one client", peer)
