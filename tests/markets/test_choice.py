"""The rule that chooses a day's questions: the same list for everybody, spread over events and categories."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from markets.choice import Candidate, ChoiceRule, Option, choose, in_order

AT = datetime(2026, 3, 8, 2, tzinfo=UTC)
RULE = ChoiceRule(
    questions=4, per_sheet=2, most_options=3, minimum_volume=Decimal(100), soonest=timedelta(days=1),
    latest=timedelta(days=90), category_limit=2, arms=("priced",),
)  # fmt: skip


def candidate(
    key: str,
    volume: int = 1000,
    *,
    event: str = "",
    category: str = "Politics",
    days: float | None = 30,
    options: int = 2,
) -> Candidate:
    return Candidate(
        source="polymarket", key=key, event_key=event or key, text=key, rules="", category=category, exclusive=True,
        options=tuple(Option(f"option {i}", i + 1, "YES") for i in range(options)), volume=Decimal(volume),
        closes_at=None if days is None else AT + timedelta(days=days),
    )  # fmt: skip


def keys(*candidates: Candidate, rule: ChoiceRule = RULE) -> list[str]:
    return [c.key for c in choose(in_order(candidates, rule, AT), rule, rule.questions)]


def test_larger_volume_comes_first_and_ties_go_by_id() -> None:
    assert keys(candidate("b", 500), candidate("a", 500), candidate("c", 900, category="Sports")) == ["c", "a", "b"]


def test_what_closes_within_the_horizon_comes_before_what_does_not() -> None:
    soon, late, undated, near = (
        candidate("soon", 9000, days=0.5), candidate("late", 8000, days=91, category="Sports"),
        candidate("undated", 7000, days=None, category="Sports"), candidate("near", 200, days=90),
    )  # fmt: skip
    assert keys(soon, late, undated, near) == ["near", "soon", "late", "undated"]


def test_one_question_for_each_event() -> None:
    assert keys(candidate("a", 500, event="e"), candidate("b", 900, event="e")) == ["b"]


def test_a_category_waits_once_it_has_its_share() -> None:
    politics = [candidate(f"p{i}", 1000 - i) for i in range(4)]
    sports = candidate("s", 200, category="Sports")
    assert keys(*politics, sports, rule=replace(RULE, questions=3)) == ["p0", "p1", "s"]
    assert keys(*politics) == ["p0", "p1", "p2", "p3"]


def test_too_little_volume_or_too_many_options_do_not_qualify() -> None:
    assert keys(candidate("thin", 99), candidate("wide", options=4), candidate("lone", options=1)) == []
    assert keys(candidate("enough", 100), candidate("widest", options=3)) == ["widest", "enough"]


def test_what_can_not_be_used_gives_its_place_to_the_next() -> None:
    ordered = in_order([candidate("a", 900), candidate("b", 800)], RULE, AT)
    assert [c.key for c in choose(ordered, RULE, 1, usable=lambda c: c.key != "a")] == ["b"]


@given(st.permutations(range(8)))
def test_the_order_in_which_candidates_come_changes_nothing(order: list[int]) -> None:
    pool = [candidate(f"k{i}", 100 + i % 3, category="AB"[i % 2], event=f"e{i % 5}") for i in range(8)]
    assert keys(*(pool[i] for i in order)) == keys(*pool)
