"""One name for categories that venues call differently: for new rows, and for those stored before."""

from importlib import import_module

import pytest
from django.apps import apps

from markets.categories import canonical_category
from markets.models import Market
from scoring.models import Leaderboard, LeaderboardHistory
from tests.commands import run
from tests.factories import MarketFactory, QuestionFactory
from tests.venue import SUNDAY, Venue


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Economics", "Economy"),
        ("Economy", "Economy"),
        ("Climate and Weather", "Weather"),
        ("climate & weather", "Weather"),
        ("Pop-Culture ", "Culture"),
        ("Entertainment", "Culture"),
        ("Elections", "Politics"),
        ("EPL", "Sports"),
        ("Science and Technology", "Science"),
        ("Tech", "Tech"),
        ("Transportation", "Transportation"),
        ("", ""),
    ],
)
def test_categories_of_one_meaning_have_one_name(name: str, category: str) -> None:
    assert canonical_category(name) == category


@pytest.mark.django_db
def test_sync_stores_the_one_name(venue: Venue) -> None:
    venue.market("Will prices rise?", category="Economics")
    venue.market("Will the strike end?", category="Labour")
    run("sync_markets", SUNDAY)
    assert dict(Market.objects.values_list("question", "category")) == {
        "Will prices rise?": "Economy",
        "Will the strike end?": "Labour",
    }


@pytest.mark.django_db
def test_migration_merges_rows_and_clears_the_leaderboards_of_merged_categories() -> None:
    market = MarketFactory(category="Climate and Weather")
    question = QuestionFactory(markets=[market], category="Climate and Weather")
    for category in ("", "Climate and Weather", "Weather", "Politics"):
        key = {"protocol": "forecast", "arm": "priced", "category": category}
        Leaderboard.objects.create(**key, computed_at=SUNDAY, entries=[], report={"inputs": {"n": 1}, "notes": []})
        LeaderboardHistory.objects.create(**key, since=SUNDAY, until=SUNDAY.replace(year=9000), entries=[])
    import_module("markets.migrations.0002_merge_categories").merge(apps, None)
    import_module("scoring.migrations.0002_merge_categories").clear(apps, None)
    for row in (market, question):
        row.refresh_from_db()
        assert row.category == "Weather"
    assert dict(Leaderboard.objects.values_list("category", "report")) == {
        "": {"notes": []},  # the next pass computes the leaderboards of its categories
        "Politics": {"inputs": {"n": 1}, "notes": []},
    }
    assert sorted(LeaderboardHistory.objects.values_list("category", flat=True)) == ["", "Politics"]
