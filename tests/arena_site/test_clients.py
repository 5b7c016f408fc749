"""Addresses of clients, as seen through trusted proxies."""

import logging
from ipaddress import ip_network
from typing import Any

import pytest

from arena_site.middleware.clients import client_networks, is_monitor

PROXY, CDN, VISITOR, LIAR = "10.0.0.5", "198.51.100.7", "203.0.113.9", "192.0.2.66"


@pytest.fixture(autouse=True)
def _behind_proxies(settings: Any) -> None:
    settings.ARENA_TRUSTED_PROXIES = list(map(ip_network, ("10.0.0.0/8", "198.51.100.7", "fd00::/8")))


def meta(peer: str, forwarded: str | None = None) -> dict[str, Any]:
    return {"REMOTE_ADDR": peer} | ({} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded})


def seen(peer: str, forwarded: str | None = None) -> str:
    return client_networks(meta(peer, forwarded))[0][0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (VISITOR, None, VISITOR),
        (VISITOR, LIAR, VISITOR),
        (PROXY, None, PROXY),
        (PROXY, "", PROXY),
        (PROXY, VISITOR, VISITOR),
        (PROXY, f"{LIAR}, {VISITOR}", VISITOR),
        (PROXY, f"{LIAR}, {VISITOR}, {CDN}", VISITOR),
        (PROXY, f"{VISITOR},10.1.2.3 , {CDN}", VISITOR),
        (PROXY, "10.9.9.9", "10.9.9.9"),
        (PROXY, f"{VISITOR}:4711", VISITOR),
        (PROXY, "nonsense", PROXY),
        (PROXY, f"{VISITOR}, nonsense", PROXY),
        (PROXY, f"{VISITOR}, nonsense, {CDN}", CDN),
        ("", VISITOR, VISITOR),
        ("::ffff:10.0.0.5", VISITOR, VISITOR),
        (PROXY, f"::ffff:{VISITOR}", VISITOR),
        ("fd00::1", "[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64"),
        (PROXY, "2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", VISITOR, "2001:db8:1:3::/64"),
    ],
)
def test_the_client_is_the_last_hop_that_is_no_trusted_proxy(peer: str, forwarded: str | None, client: str) -> None:
    assert seen(peer, forwarded) == client


@pytest.mark.parametrize("peer", [VISITOR, "10.0.0.5", "127.0.0.1"])
def test_without_proxies_only_the_peer_counts(settings: Any, peer: str) -> None:
    settings.ARENA_TRUSTED_PROXIES = ()
    assert seen(peer, LIAR) == peer
    assert seen("", LIAR) == "unknown"


def test_unnamed_proxy_is_reported_once(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.ARENA_TRUSTED_PROXIES = ()
    with caplog.at_level(logging.WARNING, logger="arena_site.middleware.clients"):
        for visitor in (VISITOR, LIAR, VISITOR):
            seen("172.16.5.4", visitor)
        seen("1.1.1.1", LIAR)
    assert [record.getMessage() for record in caplog.records] == [
        "172.16.5.4 forwards for others, but ARENA_TRUSTED_PROXIES does not name it: it counts as one client"
    ]


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("127.0.0.1", None, True),
        ("::1", None, True),
        ("192.168.7.9", None, True),
        (VISITOR, None, False),
        (PROXY, VISITOR, False),
        (PROXY, None, False),
        (PROXY, "127.0.0.1", True),
        (PROXY, f"127.0.0.1, {VISITOR}", False),
        ("127.0.0.1", VISITOR, False),
        ("127.0.0.1", "127.0.0.1", False),
        ("192.168.7.9", "192.168.7.8", False),
        ("", None, False),
    ],
)
def test_monitor_is_on_this_machine_or_in_a_named_network(
    settings: Any, peer: str, forwarded: str | None, expected: bool
) -> None:
    settings.ARENA_MONITOR_NETWORKS = [ip_network("192.168.7.0/24")]
    assert is_monitor(meta(peer, forwarded)) is expected
