"""Security headers of pages, data, errors and files."""

import re

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

ADDRESSES = (
    "/", "/markets/", "/about/", "/methodology/v2/", "/nowhere/", "/admin/login/", "/api/v1/cohorts/",
    "/api/v1/nowhere/", "/feeds/decisions.atom", "/sitemap.xml", "/robots.txt", "/healthz",
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_carries_the_security_headers_and_a_policy_of_self_alone(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    for feature in ("camera", "geolocation", "microphone", "payment", "usb"):
        assert f"{feature}=()" in answer["Permissions-Policy"]
    policy = answer["Content-Security-Policy"]
    directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert directives["default-src"] == "'self'"
    assert directives["frame-ancestors"] == directives["base-uri"] == directives["object-src"] == "'none'"
    assert {*directives.values()} <= {"'self'", "'none'"}
    assert not re.search(r"unsafe|\*|https?:|data:|blob:", policy)


def test_only_data_and_feeds_can_be_embedded_by_other_sites(client: Client) -> None:
    assert client.get("/api/v1/cohorts/")["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert client.get("/feeds/decisions.atom")["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert client.get("/about/")["Cross-Origin-Resource-Policy"] == "same-origin"
