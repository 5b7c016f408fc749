"""The page of pitfalls: each with what is done, and a figure of the arena's own data."""

from datetime import timedelta

import pytest
from django.test import Client

from markets.models import QuestionEntry, QuestionSet
from markets.selectors.sibling_questions import sibling_counts
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.guards import guards_removed
from tests.markup import get_page, visible_text

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)


def one_batch(*names: str, exclusive: bool = False) -> None:
    """Questions of one event, together in one batch."""
    entries = []
    for name in names:
        market = MarketFactory(event_id="price", event_exclusive=exclusive, option=name)
        entries.append(ask(QuestionFactory(markets=[market])))
    with guards_removed(QuestionEntry):
        for position, entry in enumerate(entries, start=1):
            rows = QuestionEntry.objects.filter(pk=entry.pk)
            rows.update(question_set=entries[0].question_set, position=position)


def figure(client: Client, name: str) -> str:
    rows = client.get("/api/v1/pitfalls/").json()["pitfalls"]
    return next(str(row["figure"]) for row in rows if row["name"] == name)


def test_siblings_are_questions_of_one_event_in_one_batch(client: Client) -> None:
    one_batch("$100 or above", "$110 or above", "unchanged")
    ask(QuestionFactory())
    counts = sibling_counts(QuestionSet.objects.values_list("pk", flat=True))
    assert (counts.questions, counts.siblings, counts.nested, counts.batches_with_siblings) == (4, 3, 2, 1)
    assert figure(client, "Questions that give each other away").startswith(
        "In the newest 60 sets, 3 of 4 questions share"
    )


def test_exclusive_options_are_no_nested_thresholds() -> None:
    one_batch("$100 or above", "$110 or above", exclusive=True)
    counts = sibling_counts(QuestionSet.objects.values_list("pk", flat=True))
    assert (counts.siblings, counts.nested) == (2, 0)


def test_figures_count_what_was_asked_and_resolved(client: Client) -> None:
    question = QuestionFactory(markets=[MarketFactory(created_at=WEEK - timedelta(days=3))], first_asked_at=WEEK)
    ask(question, {"gpt-5.1": [0.8, 0.2]})
    ask(QuestionFactory(category="Sports"))
    end_question(question, "YES")
    compute_scores(at=END)
    assert figure(client, "Logical leakage").startswith("Of 2 questions asked, 1 have resolved, 1 are pending")
    assert "newest 1 questions was 3.0 days old" in figure(client, "Questions written after the event")
    assert "for 1 a date is unknown" in figure(client, "Reliance on knowledge cut-offs")
    assert figure(client, "Gaming by correlated bets").startswith("1 resolved questions belong to 1 events")
    assert figure(client, "Skewed question distribution").startswith("50 % of 2 questions")
    assert "median of 30.0 days" in figure(client, "Training on what is evaluated")


def test_models_that_beat_the_price_are_counted_with_and_without_it(client: Client) -> None:
    for number in range(8):
        question, change = QuestionFactory(), number / 100
        ask(question, {"gpt-5.1": [0.9 - change, 0.1 + change], "grok-4": [0.3 + change, 0.7 - change]})
        ask(question, {"gpt-5.1": [0.2 + change, 0.8 - change]}, arm="blind")
        end_question(question, "YES")
    compute_scores(at=END)
    assert figure(client, "Piggybacking on human forecasts") == (
        "Models shown to beat the price: 1 of 2 when shown the market’s prices, 0 of 1 without the market’s prices."
    )


def test_page_shows_every_pitfall_with_its_guard_and_code(client: Client) -> None:
    rows = client.get("/api/v1/pitfalls/").json()["pitfalls"]
    assert len(rows) == 9
    text = visible_text(get_page(client, "/pitfalls/"))
    for row in rows:
        for part in ("name", "figure", "code"):
            assert row[part] in text
    assert "not against 1" in text
    assert client.get("/api/v1/pitfalls/?x=1").status_code == 400
