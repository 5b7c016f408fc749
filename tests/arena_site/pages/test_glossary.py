"""The glossary, and the terms of pages that open their definitions in place."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from arena_site.pages.glossary import GROUPS, TERMS
from tests.markup import element, elements, get_page, links, visible_text

pytestmark = pytest.mark.django_db
SENTENCE_END = re.compile(r"\.(?= |$)")


def test_each_term_is_defined_once_in_one_or_two_sentences() -> None:
    assert len(TERMS) == sum(map(len, GROUPS.values()))
    assert len({term.name for term in TERMS.values()}) == len(TERMS)
    counts = {slug: len(SENTENCE_END.findall(term.definition)) for slug, term in TERMS.items()}
    assert {slug: count for slug, count in counts.items() if count not in (1, 2)} == {}


def test_glossary_has_an_anchor_and_the_definition_of_each_term(client: Client) -> None:
    page = get_page(client, "/glossary/")
    for slug, term in TERMS.items():
        assert visible_text(page, f'[id="{slug}"] dt') == term.name
        assert visible_text(page, f'[id="{slug}"] dd').startswith(term.definition)
    assert visible_text(page, "#brier-score dd").startswith("The mean squared difference between stated")
    assert "/glossary/" in links(get_page(client, "/about/"), "footer a")


def test_links_to_formulas_lead_to_them(client: Client) -> None:
    formulas = {link for link in links(get_page(client, "/glossary/"), "dd a") if link.startswith("/methodology/")}
    page = get_page(client, "/methodology/")
    assert "/methodology/#score-forecast_brier" in formulas
    assert [link for link in formulas if not elements(page, f'[id="{link.partition("#")[2]}"]')] == []


def test_term_on_a_page_opens_its_definition_or_leads_to_the_glossary(client: Client) -> None:
    page = get_page(client, "/about/")
    buttons = elements(page, ".term")
    assert "proper score" in [visible_text(button) for button in buttons]
    for button in buttons:
        slug = (button.attributes["popovertarget"] or "").removeprefix("term-")
        definition = element(page, f'[popover][id="term-{slug}"]')
        assert visible_text(definition) == f"{TERMS[slug].name}. {TERMS[slug].definition} Glossary"
        assert links(definition) == [f"/glossary/#{slug}"]


def test_no_template_hides_a_definition_in_a_title() -> None:
    templates = (Path(settings.BASE_DIR) / "templates" / "pages").glob("*.html")
    assert [path.name for path in templates if "<abbr" in path.read_text()] == []
