"""Selection of a day's questions: ranking, one question per event, shares of categories."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from markets.question_selection import CandidateOption, QuestionCandidate, rank_candidates, select_candidates
from markets.selection_rule import SelectionRule

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
    return [c.key for c in select_candidates(rank_candidates(candidates, rule, AT), rule, rule.questions_per_day)]


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
    assert [c.key for c in select_candidates(ordered, RULE, 1, usable=lambda c: c.key != "a")] == ["b"]


@given(st.permutations(range(8)))
def test_the_order_of_candidates_does_not_matter(order: list[int]) -> None:
    pool = [candidate(f"k{i}", 100 + i % 3, category="AB"[i % 2], event=f"e{i % 5}") for i in range(8)]
    assert selected_keys(*(pool[i] for i in order)) == selected_keys(*pool)
