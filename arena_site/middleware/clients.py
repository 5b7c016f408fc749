"""The client's address, as seen through trusted proxies."""

import logging
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings

Address = IPv4Address | IPv6Address

SUBSCRIBER, CUSTOMER = 64, 48
"""Leading bits that the IPv6 addresses share of one subscriber, and of all that a provider may give one customer."""
CUSTOMER_FACTOR = 4
"""A customer's network may do as much as this many clients."""
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


def client_networks(meta: dict[str, Any]) -> list[tuple[str, int]]:
    """The networks that a request counts for, with their factors: an IPv4 address, or an IPv6's /64 and /48."""
    client = client_address(meta)
    if not isinstance(client, IPv6Address):
        return [(UNKNOWN if client is None else str(client), 1)]
    subscriber, customer = (str(ip_network((client, bits), strict=False)) for bits in (SUBSCRIBER, CUSTOMER))
    return [(subscriber, 1), (customer, CUSTOMER_FACTOR)]


def is_monitor(meta: dict[str, Any]) -> bool:
    """Whether a request comes from this machine or from a network that ARENA_MONITOR_NETWORKS names, by no proxy.

    A proxy that is not named in ARENA_TRUSTED_PROXIES brings strangers, though it has an address of this machine.
    """
    client = client_address(meta)
    if client is None or (meta.get("HTTP_X_FORWARDED_FOR") and not _trusted(_address(meta.get("REMOTE_ADDR", "")))):
        return False
    return client.is_loopback or any(client in network for network in settings.ARENA_MONITOR_NETWORKS)


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
