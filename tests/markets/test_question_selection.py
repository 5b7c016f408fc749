"""Selection of a day's questions: ranking, one question per event, shares of categories."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.models import Market
from markets.question_selection import CandidateOption, QuestionCandidate, rank_candidates, select_candidates
from markets.selection_rule import SelectionRule
from markets.services.market_storage import canonical_category
from markets.thresholds import nested_chains
from tests.commands import SUNDAY, run
from tests.sandbox import Venue

AT = datetime(2026, 3, 8, 2, tzinfo=UTC)
RULE = SelectionRule(
    questions_per_day=4, questions_per_call=2, most_options=3, minimum_volume=Decimal(100), soonest_days=1,
    latest_days=90, category_share=Decimal("0.5"), arms=("priced",),
)  # fmt: skip


def candidate(
    key: str,
    volume: int = 1000,
    *,
    event: str = "",
    category: str = "Politics",
    days: float | None = 30,
    options: int = 2,
) -> QuestionCandidate:
    return QuestionCandidate(
        source="polymarket", key=key, event_key=event or key, text=key, rules="", category=category, exclusive=True,
        options=tuple(CandidateOption(f"option {i}", i + 1, "YES") for i in range(options)), volume=Decimal(volume),
        closes_at=None if days is None else AT + timedelta(days=days),
    )  # fmt: skip


def selected_keys(*candidates: QuestionCandidate, rule: SelectionRule = RULE) -> list[str]:
    return [row.key for row in select_candidates(rank_candidates(candidates, rule, AT), rule, rule.questions_per_day)]


def test_larger_volume_comes_first_and_ties_go_by_id() -> None:
    assert selected_keys(candidate("b", 500), candidate("a", 500), candidate("c", 900, category="Sports")) == [
        "c",
        "a",
        "b",
    ]


def test_questions_closing_within_the_horizon_come_first() -> None:
    soon, late, undated, near = (
        candidate("soon", 9000, days=0.5), candidate("late", 8000, days=91, category="Sports"),
        candidate("undated", 7000, days=None, category="Sports"), candidate("near", 200, days=90),
    )  # fmt: skip
    assert selected_keys(soon, late, undated, near) == ["near", "soon", "late", "undated"]


def test_an_event_gives_one_question() -> None:
    assert selected_keys(candidate("a", 500, event="e"), candidate("b", 900, event="e")) == ["b"]


def test_a_category_exceeds_its_share_only_where_no_other_is_left() -> None:
    politics = [candidate(f"p{i}", 1000 - i) for i in range(4)]
    sports = candidate("s", 200, category="Sports")
    assert selected_keys(
        *politics, sports, rule=RULE.model_copy(update={"questions_per_day": 3, "category_share": Decimal("0.7")})
    ) == ["p0", "p1", "s"]
    assert selected_keys(*politics) == ["p0", "p1", "p2", "p3"]


def test_volume_and_number_of_options_qualify_a_question() -> None:
    assert selected_keys(candidate("thin", 99), candidate("wide", options=4), candidate("lone", options=1)) == []
    assert selected_keys(candidate("enough", 100), candidate("widest", options=3)) == ["widest", "enough"]


def test_the_next_question_replaces_an_unusable_one() -> None:
    ordered = rank_candidates([candidate("a", 900), candidate("b", 800)], RULE, AT)
    assert [row.key for row in select_candidates(ordered, RULE, 1, usable=lambda row: row.key != "a")] == ["b"]


@given(st.permutations(range(8)))
def test_the_order_of_candidates_does_not_matter(order: list[int]) -> None:
    pool = [candidate(f"k{i}", 100 + i % 3, category="AB"[i % 2], event=f"e{i % 5}") for i in range(8)]
    assert selected_keys(*(pool[i] for i in order)) == selected_keys(*pool)


# --- Nested thresholds by the names that venues give the options of one event


@pytest.mark.parametrize(
    ("names", "chains"),
    [
        (["$74,300 or above", "$75,000 or above"], [[0, 1]]),  # Kalshi's
        (["$979.99 or below", "$1,100 or below"], [[1, 0]]),
        (["Over 3.5 maps", "Over 2.5 maps"], [[1, 0]]),
        (["↑ 110,000", "↑ 100,000", "↓ 80,000", "↓ 70,000"], [[1, 0], [2, 3]]),  # Polymarket's
        (["5+", "10+"], [[0, 1]]),
        (["$1,000 to 1,019.99", "$1,020 to 1,039.99"], []),  # ranges
        (["Exactly 5", "Exactly 6"], []),
        (["no more than 3", "no more than 5"], []),
        ([">$500M", ">$1B"], []),  # other units
        (["Liverpool", "Arsenal"], []),
        (["Over 2.5 maps", "Over 2.5 maps"], []),
        (["December 31, 2025", "March 31, 2026"], []),  # no title that says by when
    ],
)
def test_chains_run_from_the_option_that_others_imply(names: list[str], chains: list[list[int]]) -> None:
    assert nested_chains("What will it be?", dict(enumerate(names))) == chains


def test_dates_are_nested_where_the_title_ends_in_by() -> None:
    names = {1: "December 31, 2025", 2: "March 31, 2026", 3: "February 30, 2026", 4: "Never"}
    assert nested_chains("MicroStrategy sells any Bitcoin by ___ ?", names) == [[2, 1]]
    assert nested_chains("Bitcoin sold by…?", names) == [[2, 1]]


# --- One name for categories that venues call differently


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
