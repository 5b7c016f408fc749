"""Snapshots through their command: on the grid, once, at prices known by then, and the same when replayed."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from agents.models import Agent, Position
from cohorts.models import Cohort
from markets.models import Market, Outcome, PriceObservation
from scoring.models import Leaderboard, Snapshot
from scoring.services.snapshots import delete_snapshots
from tests.answers import GPT, GROK, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN, CUP = "Will it rain?", "Lakers or Celtics?"
TEN = timedelta(minutes=10)


def hold(venue: Venue) -> None:
    """GPT holds 1,250 YES shares of RAIN bought at 0.40, and 2,000 of the Celtics at 0.45; Grok 2,000 NO at 0.60."""
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    line_up(GPT, GROK)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 500, (CUP, "Celtics", 900)))
    venue.says(GROK, bet(RAIN, "NO", 1200))
    assert run("run_decisions", DECISION)["trades"] == 3


season = shared_rows_at_venue(hold)


@pytest.fixture
def holding(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def snapshot(at: datetime, model: str = GPT) -> Snapshot:
    return Snapshot.objects.get(agent__model_id=model, taken_at=at)


def at_rest(**where: Any) -> list[dict[str, Any]]:
    """Snapshots without their ids, to be compared."""
    rows = Snapshot.objects.filter(**where).order_by("agent", "taken_at")
    return [{key: value for key, value in row.items() if key != "id"} for row in rows.values()]


def test_instant_is_taken_down_to_the_grid(holding: Venue) -> None:
    ran = run("take_snapshots", SUNDAY + TEN + timedelta(minutes=9, seconds=59))
    assert (ran.code, ran["snapshots"], ran["taken_at"]) == (0, 2, "2026-03-08T00:10:00Z")
    assert set(Snapshot.objects.values_list("taken_at", flat=True)) == {SUNDAY + TEN}


def test_value_is_cash_and_positions_at_their_marks(holding: Venue) -> None:
    holding.move(RAIN, Yes="0.43", No="0.57")
    run("sync_markets", SUNDAY + TEN)
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran["priced"], ran["fallback_prices"]) == (3, 0)
    mine, groks = snapshot(SUNDAY + TEN), snapshot(SUNDAY + TEN, GROK)
    assert (mine.cash, mine.positions_value) == (Decimal("8600.00"), Decimal("1437.50"))
    assert (mine.pnl, mine.pnl_percent) == (Decimal("37.50"), Decimal("0.3750"))
    assert (groks.total_value, groks.open_positions) == (Decimal("9940.00"), 1)


def test_second_run_for_an_instant_changes_nothing(holding: Venue) -> None:
    run("take_snapshots", SUNDAY + TEN)
    before = at_rest()
    holding.move(RAIN, Yes="0.47", No="0.53")
    assert run("take_snapshots", SUNDAY + TEN)["snapshots"] == 0
    assert at_rest() == before


def test_nothing_that_happened_after_the_instant_is_in_it(holding: Venue) -> None:
    """The bets of 00:05 are on record when the snapshot of 00:00 is taken."""
    ran = run("take_snapshots", SUNDAY)
    assert (ran["replay"], ran["snapshots"], ran["priced"]) == (True, 2, 0)
    early = snapshot(SUNDAY)
    assert (early.cash, early.positions_value, early.open_positions) == (Decimal("10000.00"), 0, 0)


def test_missed_instant_stays_a_gap(holding: Venue) -> None:
    run("take_snapshots", SUNDAY + TEN)
    run("take_snapshots", SUNDAY + 4 * TEN)
    assert set(Snapshot.objects.values_list("taken_at", flat=True)) == {SUNDAY + TEN, SUNDAY + 4 * TEN}


@pytest.mark.forged_record
def test_replay_gives_what_was_taken_then_and_asks_nobody(holding: Venue) -> None:
    """A season of moves, a vanished price, a sale, a closing and a payout; then every snapshot is taken anew."""
    holding.says(GPT, sell(CUP, "33.3"))
    day = timedelta(days=1)
    snapshots_taken = []
    for number in (0, 1, 2, 3, 4, 7, 8, 9, 11, 12):
        at = SUNDAY + number * day
        if number == 2:
            holding.move(RAIN, Yes="0.52", No="0.48")
        if number == 4:  # a price that vanishes everywhere, then the market closes
            holding.row(CUP)["outcomePrices"] = '["0.55", ""]'
            for token in holding.tokens(CUP):
                holding.quote(token, None)
        if number == 9:
            holding.close(CUP)
        if number == 11:
            holding.resolve(RAIN, "Yes")
        for command in ("sync_markets", "check_resolutions", "take_snapshots"):
            run(command, at)
        snapshots_taken.append(at)
        if number == 7:
            assert run("run_decisions", at + timedelta(minutes=5))["trades"] == 1
    originals = at_rest(taken_at__gt=SUNDAY)
    assert len({row["total_value"] for row in originals}) > 4
    assert any(row["stale_positions"] for row in originals)
    with guards_removed(Snapshot):
        Snapshot.objects.all().delete()
    holding.requests.clear()
    for at in snapshots_taken[:-1]:
        assert run("take_snapshots", at)["replay"]
    assert at_rest(taken_at__gt=SUNDAY) == [row for row in originals if row["taken_at"] < snapshots_taken[-1]]
    assert holding.requests == []


def test_replay_of_a_sunday_moves_returns_to_their_week_on_the_leaderboard(holding: Venue) -> None:
    """The price moves in the first week, of which there is no snapshot until its Sunday is replayed."""
    holding.move(RAIN, Yes="0.52", No="0.48")
    run("sync_markets", SUNDAY + timedelta(days=2))
    run("take_snapshots", SUNDAY + timedelta(days=2))
    with guards_removed(Snapshot):
        delete_snapshots([*Snapshot.objects.values_list("pk", flat=True)])
    run("sync_markets", SUNDAY + timedelta(days=8))
    run("take_snapshots", SUNDAY + timedelta(days=8))

    def weeks() -> Any:
        slug = Agent.objects.get(model_id=GPT).family.slug
        return Leaderboard.objects.get(methodology="").report["weeks"][slug]["1"]

    assert weeks() == {"2026-03-08": 0.0, "2026-03-15": 1.5}  # 1,250 shares gained 12 cents each
    before = Leaderboard.objects.get(methodology="").computed_at
    assert run("take_snapshots", SUNDAY + timedelta(weeks=1))["replay"]
    assert weeks() == {"2026-03-08": 1.5, "2026-03-15": 0.0}
    assert Leaderboard.objects.get(methodology="").computed_at == before


def test_replay_makes_no_request_and_writes_no_price(holding: Venue) -> None:
    holding.move(RAIN, Yes="0.90", No="0.10")
    run("sync_markets", SUNDAY + timedelta(hours=5))
    run("take_snapshots", SUNDAY + timedelta(hours=5))
    holding.requests.clear()
    prices = PriceObservation.objects.count()
    ran = run("take_snapshots", SUNDAY + timedelta(hours=2))
    assert (ran.code, ran["replay"], ran["snapshots"]) == (0, True, 2)
    assert holding.requests == []
    assert PriceObservation.objects.count() == prices
    assert snapshot(SUNDAY + timedelta(hours=2)).positions_value == Decimal("1400.00")


# ── prices that fail ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("midpoint", [None, "NaN", "0.0005"], ids=lambda midpoint: f"midpoint {midpoint}")
def test_absurd_or_missing_price_never_collapses_the_value(holding: Venue, midpoint: str | None) -> None:
    """With Gamma gone too, the last accepted price stays and is flagged."""
    holding.move(RAIN, Yes="0.45", No="0.55")
    run("sync_markets", SUNDAY + TEN)
    run("take_snapshots", SUNDAY + TEN)
    token = holding.tokens(RAIN)[0]
    holding.midpoints[token] = midpoint
    holding.books[token] = (None, "0.001")
    holding.row(RAIN)["outcomePrices"] = '["NaN", ""]'
    run("sync_markets", SUNDAY + 2 * TEN)
    ran = run("take_snapshots", SUNDAY + 2 * TEN)
    assert (ran.code, ran["priced"], ran["fallback_prices"]) == (0, 1, 2)
    mine = snapshot(SUNDAY + 2 * TEN)
    assert (mine.total_value, mine.stale_positions) == (Decimal("10062.50"), 1)
    assert Outcome.objects.get(market__question=RAIN, side="YES").price_stale


def test_zero_or_one_everywhere_is_no_price_of_an_open_market(holding: Venue) -> None:
    """A tight book around it does not make it one."""
    holding.move(RAIN, Yes="0", No="1")
    run("sync_markets", SUNDAY + TEN)
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran["priced"], ran["fallback_prices"]) == (1, 2)
    assert snapshot(SUNDAY + TEN).total_value == snapshot(SUNDAY + TEN, GROK).total_value == Decimal("10000.00")


def test_jump_with_a_book_that_has_both_sides_is_believed(holding: Venue) -> None:
    holding.quote(holding.tokens(RAIN)[0], "0.93")
    assert run("take_snapshots", SUNDAY + TEN)["fallback_prices"] == 0
    assert snapshot(SUNDAY + TEN).positions_value == Decimal("2062.50")
    assert snapshot(SUNDAY + TEN, GROK).positions_value == Decimal("140.00")


def test_gamma_steps_in_where_the_book_is_gone_and_is_no_gap(holding: Venue) -> None:
    holding.quote(holding.tokens(RAIN)[0], None)
    holding.row(RAIN)["outcomePrices"] = '["0.44", "0.56"]'
    run("sync_markets", SUNDAY + TEN)
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran.code, ran["priced"], ran["fallback_prices"]) == (0, 3, 0)
    assert snapshot(SUNDAY + TEN).positions_value == Decimal("1450.00")


def test_price_that_is_no_longer_heard_of_is_stale_and_not_forever_fresh(holding: Venue) -> None:
    """A market gone from its venue would else be marked at Gamma's last word as if that were news."""
    holding.gone.add(holding.row(RAIN)["id"])
    holding.quote(holding.tokens(RAIN)[0], None)
    run("sync_markets", SUNDAY + TEN)
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran["priced"], ran["fallback_prices"]) == (1, 2)
    assert snapshot(SUNDAY + TEN).positions_value == Decimal("1400.00")


def test_without_any_clob_the_job_says_so_once_and_snapshots_stand_at_last_prices_flagged(
    holding: Venue,
) -> None:
    holding.down |= {"clob", "gamma"}
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran.code, ran["snapshots"], ran["priced"], ran["fallback_prices"]) == (1, 2, 0, 3)
    assert len(ran.stderr.strip().splitlines()) == 1
    assert ran.stderr.startswith("no price was accepted: clob: ")
    assert snapshot(SUNDAY + TEN).total_value == Decimal("10000.00")
    assert snapshot(SUNDAY + TEN).stale_positions == 2


def test_clob_that_answers_without_a_single_price_is_reported_too(holding: Venue) -> None:
    """An empty answer is no success."""
    holding.midpoints.clear()
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran.code, ran["snapshots"], ran["fallback_prices"]) == (1, 2, 3)
    assert ran.stderr.strip() == "no price was accepted: the price rule refused all 3 requested"


def test_price_that_comes_back_is_fresh_again(holding: Venue) -> None:
    token = holding.tokens(RAIN)[0]
    holding.midpoints[token] = None
    run("take_snapshots", SUNDAY + TEN)
    holding.quote(token, "0.41")
    assert run("take_snapshots", SUNDAY + 2 * TEN)["fallback_prices"] == 0
    assert snapshot(SUNDAY + 2 * TEN).stale_positions == 0


def test_every_change_of_mind_about_a_price_is_recorded_with_its_reason(holding: Venue) -> None:
    holding.books[holding.tokens(RAIN)[0]] = (None, "0.001")
    holding.midpoints[holding.tokens(RAIN)[0]] = "0.0005"
    run("take_snapshots", SUNDAY + TEN)
    refused = PriceObservation.objects.get(outcome__side="YES", observed_at=SUNDAY + TEN)
    assert (refused.price, refused.midpoint, refused.ask, refused.stale) == (
        Decimal("0.40"), Decimal("0.0005"), Decimal("0.001"), True,
    )  # fmt: skip
    assert refused.reason.startswith("midpoint refused: far from Gamma, no tight two-sided book")


def test_each_side_of_a_market_has_its_own_prices_and_reason(holding: Venue) -> None:
    token = holding.tokens(RAIN)[0]
    holding.books[token] = (None, "0.001")
    holding.midpoints[token] = "0.0005"
    run("take_snapshots", SUNDAY + TEN)
    holding.quote(token, "0.90")
    run("take_snapshots", SUNDAY + 2 * TEN)
    retained = "far from Gamma, no tight two-sided book; Gamma's price"
    unread = "refused: not read again since the last accepted price"
    assert [
        [text if isinstance(text, str) else text and f"{text.normalize():f}" for text in row]
        for row in PriceObservation.objects.filter(outcome__market__question=RAIN, observed_at__gt=SUNDAY)
        .order_by("observed_at", "-outcome__side")
        .exclude(observed_at=DECISION)
        .values_list("price", "midpoint", "gamma", "bid", "ask", "reason")
    ] == [
        ["0.4", "0.0005", "0.4", None, "0.001",
            f"midpoint refused: {retained} {unread}"],
        ["0.6", "0.9995", "0.6", "0.999", None,
            f"midpoint refused: {retained} {unread}"],
        ["0.9", "0.9", "0.4", "0.895", "0.905",
            "midpoint of a tight two-sided book"],
        ["0.1", "0.1", "0.6", "0.095", "0.105",
            "midpoint of a tight two-sided book"],
    ]  # fmt: skip


# ── closed markets and cohorts that end ───────────────────────────────────────────────────────────


def test_closed_market_keeps_its_last_price_whatever_upstream_shows(holding: Venue) -> None:
    holding.close(RAIN, "0.9995", "0.0005", status="proposed")
    run("sync_markets", SUNDAY + TEN)
    ran = run("take_snapshots", SUNDAY + TEN)
    assert (ran.code, ran["fallback_prices"]) == (0, 0)
    assert snapshot(SUNDAY + TEN).total_value == Decimal("10000.00")


def test_completed_cohort_gets_one_closing_snapshot_after_its_last_settlement(holding: Venue) -> None:
    ends = SUNDAY + timedelta(weeks=5, hours=7, minutes=3)
    run("take_snapshots", SUNDAY + TEN)
    holding.resolve(RAIN, "Yes")
    holding.cancel(CUP)
    assert run("check_resolutions", ends)["cohorts_completed"] == 1
    run("take_snapshots", ends)  # 07:00: the settlement of 07:03 is not known yet
    for later in (timedelta(minutes=7), timedelta(minutes=17), timedelta(days=3)):
        run("take_snapshots", ends + later)
    assert sorted(set(Snapshot.objects.values_list("taken_at", flat=True)))[-1] == ends + timedelta(minutes=7)
    closing = snapshot(ends + timedelta(minutes=7))
    assert (closing.cash, closing.positions_value) == (Decimal("10750.00"), 0)
    assert closing.resolved_bets == 1


def test_closing_snapshot_is_taken_after_a_stop(holding: Venue) -> None:
    ends = SUNDAY + timedelta(weeks=5)
    holding.resolve(RAIN, "Yes")
    holding.cancel(CUP)
    run("check_resolutions", ends)
    run("take_snapshots", ends + timedelta(days=2))
    assert set(Snapshot.objects.values_list("taken_at", flat=True)) == {ends + TEN}
    assert Cohort.objects.get().status == "completed"


def test_bankrupt_agent_stays_on_the_curve(holding: Venue) -> None:
    Agent.objects.filter(model_id=GROK).update(status=Agent.Status.BANKRUPT)
    run("take_snapshots", SUNDAY + TEN)
    assert snapshot(SUNDAY + TEN, GROK).total_value == Decimal("10000.00")


def test_one_batch_of_midpoints_and_books_prices_everything(holding: Venue) -> None:
    holding.requests.clear()
    run("take_snapshots", SUNDAY + TEN)
    assert holding.requests == ["POST /clob/midpoints", "POST /clob/books"]
    assert Market.objects.traded().count() == 2
    assert Position.objects.open().count() == 3
