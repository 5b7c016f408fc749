"""Search of the whole site: models, markets and questions that contain the words."""

from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.list_filters import matching_families
from agents.models import Family
from arena_site.pages.lists import search_text
from cohorts.models import Cohort
from foundation.search_words import search_words
from markets.models import Market, Question
from markets.selectors.list_filters import matching_markets, matching_questions
from scoring.selectors.competition import competition_index

COHORT_WORDS = {"cohort", "cohorts"}
SHOWN = 10
"""Results of each kind; their list has all of them."""


class Matches(NamedTuple):
    """The first rows that match, and how many there are."""

    rows: list[Any]
    total: int


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Models, cohorts, markets and questions with the words of `q`, the largest or newest first."""
    text = search_text(request)
    context: dict[str, Any] = {"text": text}
    if text:
        markets = matching_markets(Market.objects.only("question", "status"), text)
        questions = matching_questions(Question.objects.only("text", "status"), text)
        context |= {
            "cohorts": _matching_cohorts(text),
            "families": _matches(matching_families(Family.objects.order_by("pk"), text)),
            "markets": _matches(markets.order_by("-volume", "pk")),
            "questions": _matches(questions.order_by("-pk")),
        }
    return render(request, "search.html", context)


def _matching_cohorts(text: str) -> list[Cohort]:
    """Cohorts by number, such as “cohort 3” or “3”; the newest for “cohort” alone."""
    words = {word.casefold() for word in search_words(text)}
    numbers = {word for word in words if word.isdecimal()}
    if words - numbers - COHORT_WORDS or len(numbers) > 1:
        return []
    cohorts = competition_index().cohorts.values()
    matches = [cohort for cohort in cohorts if not numbers or str(cohort.number) in numbers]
    return sorted(matches, key=lambda cohort: -cohort.number)[:SHOWN]


def _matches(rows: QuerySet[Any]) -> Matches:
    total = rows.count()
    return Matches(list(rows[:SHOWN]) if total else [], total)
