"""One name for categories that venues call differently."""

import pytest

from markets.models import Market
from markets.services.market_storage import canonical_category
from tests.commands import run
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
