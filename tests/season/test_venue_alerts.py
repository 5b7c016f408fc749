"""Alerts about venues that can not be read, and prices that are no longer accepted, by commands alone."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from arena_site.operations.alert_watch import watch_alerts
from foundation.models import Alert
from markets.models import Market
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN = "Will it rain?"
MINUTE = timedelta(minutes=1)


def open_alerts() -> list[tuple[str, list[str]]]:
    return [(alert.kind, alert.names) for alert in Alert.objects.open().order_by("kind")]


def test_venue_that_gives_nothing_is_down_until_the_next_sync_that_reads_it(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    venue.down.add("gamma")
    assert run("sync_markets", SUNDAY + 5 * MINUTE).code == 1
    assert Alert.objects.get().urgent is False, "one failure is a warning"
    assert run("sync_markets", SUNDAY + 10 * MINUTE).code == 1
    assert Alert.objects.get().urgent is True
    assert open_alerts() == [("venue-down", ["Polymarket (gamma)"])], "one cause is one alert"
    alert = Alert.objects.get()
    assert alert.message.startswith("Polymarket can not be read. gamma: GET /markets/keyset answered 503")
    assert "GAMMA_BASE_URL" in alert.remedy
    venue.down.clear()
    assert run("sync_markets", SUNDAY + 15 * MINUTE).code == 0
    assert open_alerts() == []


def test_venue_that_is_no_longer_a_source_is_not_down(venue: Venue, settings: Any) -> None:
    venue.market(RAIN)
    settings.ARENA_SOURCES, settings.KALSHI_BASE_URL = ("polymarket", "kalshi"), "http://127.0.0.1:9"
    run("sync_markets", SUNDAY)
    assert open_alerts() == [("venue-down", ["Kalshi (kalshi)"])]
    settings.ARENA_SOURCES = ("polymarket",)
    run("sync_markets", SUNDAY + 5 * MINUTE)
    assert open_alerts() == []


def test_order_books_that_give_nothing_are_down_until_the_next_snapshot_that_reads_them(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    venue.down.add("clob")
    assert run("take_snapshots", SUNDAY + 10 * MINUTE).code == 1
    assert open_alerts() == [("venue-down", ["Polymarket (clob)"])]
    venue.down.clear()
    assert run("take_snapshots", SUNDAY + 20 * MINUTE).code == 0
    assert open_alerts() == []


def test_half_an_hour_without_an_accepted_price_is_an_alert_until_the_next_one(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    venue.down.add("gamma")
    run("sync_markets", SUNDAY + 29 * MINUTE)
    assert [kind for kind, _ in open_alerts()] == ["venue-down"]
    run("sync_markets", SUNDAY + 30 * MINUTE)
    assert open_alerts() == [("prices-stale", ["Polymarket"]), ("venue-down", ["Polymarket (gamma)"])]
    stale = Alert.objects.get(kind="prices-stale")
    assert stale.message == "No price of Polymarket was accepted since 2026-03-08 00:00 UTC."
    assert "sync_markets" in stale.remedy
    venue.down.clear()
    run("sync_markets", SUNDAY + 35 * MINUTE)
    assert open_alerts() == []


def test_worker_sees_stale_prices_where_no_sync_ends(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    watch_alerts(now=SUNDAY + 29 * MINUTE)
    assert open_alerts() == []
    watch_alerts(now=SUNDAY + 31 * MINUTE)
    assert open_alerts() == [("prices-stale", ["Polymarket"])]
    Market.objects.update(status="closed", closed_at=SUNDAY)
    watch_alerts(now=SUNDAY + 32 * MINUTE)
    assert open_alerts() == [], "nothing is open"


def test_worker_sends_alerts_without_a_job(venue: Venue, settings: Any, mailoutbox: list[Any]) -> None:
    settings.ARENA_ALERT_EMAIL = ["night@example.org"]
    venue.down.add("gamma")
    with time_machine.travel(SUNDAY, tick=False):
        run("sync_markets", SUNDAY)
        watch_alerts(now=SUNDAY + timedelta(seconds=15))
    (mail,) = mailoutbox
    assert "Polymarket can not be read" in mail.subject
