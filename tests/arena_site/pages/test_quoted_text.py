"""Blocks of text by models and venues: reasoning, rationales and market rules."""

import pytest
from django.conf import settings
from django.test import Client

from agents.models import Decision, Forecast
from tests.factories import DecisionFactory, MarketFactory, QuestionFactory, ask
from tests.guards import guards_removed
from tests.markup import elements, get_page

pytestmark = pytest.mark.django_db

QUOTED = 'First & <b>bold</b>.\nSecond line.\n\n<p>Third</p> <script>alert("1")</script> {{ secret }} &amp;'


def addresses() -> list[str]:
    """A page of each kind that quotes, with the text above in every quoted field."""
    decision = DecisionFactory()
    market = MarketFactory(description=QUOTED)
    question = QuestionFactory(markets=[market], rules=QUOTED)
    forecast = ask(question, {"gpt-5.1": [0.7, 0.3]}).forecasts.get()
    with guards_removed(Decision, Forecast):
        Decision.objects.update(reasoning=QUOTED)
        Forecast.objects.update(rationale=QUOTED)
    return [
        f"/decisions/{decision.pk}/",
        f"/forecasts/{forecast.pk}/",
        f"/questions/{question.pk}/",
        f"/markets/{market.pk}/",
    ]


def test_quoted_text_is_shown_as_it_was_written(client: Client) -> None:
    for address in addresses():
        page = get_page(client, address)
        quotes = elements(page, "blockquote")
        assert [quote.text() for quote in quotes] == [QUOTED] * (2 if "questions" in address else 1), address
        assert [child.tag for quote in quotes for child in quote.iter()] == [], address


def test_the_stylesheet_keeps_the_line_breaks_of_quoted_text() -> None:
    assert (
        "\nblockquote { white-space: pre-line;" in (settings.BASE_DIR / "arena_site/static/arena/arena.css").read_text()
    )
