"""The about page, errors and the frame of every page."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from tests.arena_site.addresses import FORMS, OPERATIONS, PLAYED, pages
from tests.markup import elements, get_page, visible_text

pytestmark = pytest.mark.django_db


def test_about_page_states_the_limits_of_the_results(client):
    markup = client.get("/about/").content.decode()

    assert "not a proper score" in markup
    assert "Paper trades have no depth" in markup


def test_an_unknown_address_is_named_and_leads_home(client):
    answer = client.get("/nowhere/<b>/")

    assert answer.status_code == 404
    markup = answer.content.decode()
    assert "/nowhere/%3Cb%3E/" in markup
    assert 'href="/"' in markup


def test_a_broken_page_needs_nothing_that_may_be_broken():
    assert "Server error" in render_to_string("500.html")


def test_the_page_being_read_is_marked_in_the_navigation(client):
    page = get_page(client, "/about/")
    assert [visible_text(link) for link in elements(page, "nav [aria-current]")] == ["Data and method", "About"]
    assert len(elements(page, "nav[aria-label=Main] a")) == 6


def test_files_that_every_page_loads_exist(client):
    frame = client.get("/about/").content.decode()
    files = set(re.findall(r'"/static/([^"#]+)', frame))

    assert files == {"arena/arena.css", "arena/favicon.svg", "arena/times.js", "arena/tables.js", "arena/copies.js"}
    assert all(finders.find(file) for file in files)


def test_pages_are_only_read(client):
    addresses = {*pages(missing=PLAYED), *OPERATIONS, "/sitemap-markets.xml"}
    assert {address for address in addresses if client.post(address).status_code != 405} == FORMS
