"""Security headers of pages, data, errors and files."""

import pytest
from django.test import Client

from tests.arena_site.addresses import FORMS, OPERATIONS, PLAYED, endpoints, pages

pytestmark = pytest.mark.django_db

ELSEWHERE = ("/nowhere/", "/admin/login/", "/api/v1/nowhere/")


def test_every_answer_carries_the_security_headers_and_a_policy_of_self_alone(client: Client) -> None:
    for address in (*pages(missing=PLAYED), *endpoints(), *OPERATIONS, *ELSEWHERE):
        answer = client.get(address)
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["Referrer-Policy"] == ("no-referrer" if address in FORMS else "same-origin"), address
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
        for feature in ("camera", "geolocation", "microphone", "payment", "usb"):
            assert f"{feature}=()" in answer["Permissions-Policy"]
        policy = answer["Content-Security-Policy"]
        directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
        assert directives["default-src"] == "'self'"
        assert directives["frame-ancestors"] == directives["base-uri"] == directives["object-src"] == "'none'"
        sources = {"'self'", "'none'"} | ({"'self' data:"} if address == "/api/docs/" else set())
        assert {*directives.values()} <= sources, address


def test_only_data_and_feeds_can_be_embedded_by_other_sites(client: Client) -> None:
    assert client.get("/api/v1/cohorts/")["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert client.get("/feeds/decisions.atom")["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert client.get("/about/")["Cross-Origin-Resource-Policy"] == "same-origin"
