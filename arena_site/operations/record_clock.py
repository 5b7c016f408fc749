"""Recorded instants that lie ahead of the database's clock: their alert, and the way out where only readings do."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import F, Max, Q

from agents.models import Decision, Forecast, JournalEntry, Trade
from cohorts.models import Cohort
from foundation.clock import TOLERANCE, database_now
from foundation.models import AlertItem
from foundation.process_names import machine
from foundation.services.alerts import clear_alert, raise_alert
from markets.models import Market, Outcome, PriceObservation, Question, QuestionSet, Universe
from scoring.models import Snapshot

RECORD_AHEAD = "record-ahead"
REMEDY = (
    'Until the clock is there, runs are replays of stored prices. See docs/operate.md, "A record ahead of the '
    'clock": manage.py withdraw_readings mends readings of venues; for anything else restore a backup from before.'
)
READINGS: tuple[tuple[type[models.Model], str], ...] = (
    (PriceObservation, "observed_at"), (Market, "refreshed_at"), (Market, "listed_at"), (Market, "first_seen_at"),
    (Market, "closed_at"), (Outcome, "price_at"), (Outcome, "quote_at"),
)  # fmt: skip
"""Instants at which a venue was read: the next sync reads it again."""
FACTS: tuple[tuple[type[models.Model], str], ...] = (
    (Cohort, "started_at"), (Universe, "frozen_at"), (QuestionSet, "frozen_at"), (Decision, "decided_at"),
    (Forecast, "made_at"), (Trade, "executed_at"), (JournalEntry, "occurred_at"), (Snapshot, "taken_at"),
    (Market, "resolved_at"), (Question, "closed_at"),
)  # fmt: skip
"""Instants of the record that nothing can change."""


class FactsAhead(Exception):
    """The record holds facts ahead of the clock, which can not be withdrawn."""


@dataclass(frozen=True, slots=True)
class InstantsAhead:
    """The newest recorded instant of each kind that is ahead of the clock, by the name of its table and field."""

    newest: dict[str, datetime]

    def __bool__(self) -> bool:
        return bool(self.newest)

    def __str__(self) -> str:
        lines = []
        for name, instant in self.newest.items():
            lines.append(f"{name} {instant:%Y-%m-%d %H:%M} UTC")
        return "; ".join(lines)


def instants_ahead(fields: Iterable[tuple[type[models.Model], str]] = (*READINGS, *FACTS)) -> InstantsAhead:
    """The recorded instants that are ahead of the database's clock by more than the tolerance."""
    limit, newest = database_now() + TOLERANCE, {}
    for model, field in fields:
        rows = model._base_manager.filter(**{f"{field}__gt": limit})
        if instant := rows.aggregate(newest=Max(field))["newest"]:
            newest[f"{model._meta.verbose_name} {field}"] = instant
    return InstantsAhead(newest)


def alert_clock_ahead(reason: str) -> None:
    """Raises the alert of this machine, whose jobs record nothing while its clock is ahead of the database's."""
    raise_alert(
        kind=RECORD_AHEAD,
        items={machine(): machine().rstrip(":")},
        message=f"No job runs on {machine().rstrip(':')}: {reason}.",
        at=database_now(),
        path="/admin/#infrastructure",
        remedy="Set its clock (NTP): timedatectl set-ntp true. Its next job resolves this.",
    )


def clear_clock_ahead() -> None:
    """Clears the alert of this machine's clock, where there is one."""
    if AlertItem.objects.filter(kind=RECORD_AHEAD, subject=machine(), cleared_at=None).exists():
        clear_alert(RECORD_AHEAD, [machine()], at=database_now())


@transaction.atomic
def withdraw_readings() -> dict[str, int]:
    """Deletes the price decisions that are ahead of the clock, and dates markets read then as read now.

    A price falls back on the last decision that remains. Raises FactsAhead where anything else is ahead.
    """
    if ahead := instants_ahead(FACTS):
        raise FactsAhead(f"can not be withdrawn: {ahead}. Restore a backup from before, or wait until then")
    now = database_now()
    limit = now + TOLERANCE
    observations = PriceObservation.objects.filter(observed_at__gt=limit)
    outcomes = set(observations.values_list("outcome", flat=True))
    withdrawn, _ = observations.delete()
    remaining = PriceObservation.objects.latest(outcomes, limit)
    for outcome in Outcome.objects.filter(pk__in=outcomes):
        last = remaining.get(outcome.pk)
        outcome.price, outcome.price_source, outcome.price_stale = None, "", False
        if last is not None:
            outcome.price, outcome.price_source, outcome.price_stale = last.price, last.source, last.stale
        outcome.price_at = last.observed_at if last else None
        outcome.save(update_fields=["price", "price_source", "price_stale", "price_at"])
    Outcome.objects.filter(price_at__gt=limit).update(price_at=now)
    Outcome.objects.filter(quote_at__gt=limit).update(quote_at=None)
    read = Market.objects.filter(Q(refreshed_at__gt=limit) | Q(listed_at__gt=limit) | Q(first_seen_at__gt=limit))
    markets = read.update(refreshed_at=now, **_no_later_than(now, "listed_at", "first_seen_at"))
    Market.objects.filter(closed_at__gt=limit).update(closed_at=now)
    return {"markets": markets, "prices": withdrawn}


def _no_later_than(now: datetime, *names: str) -> dict[str, Any]:
    """The fields with `now` where they are later."""
    values = {}
    for name in names:
        values[name] = models.Case(models.When(**{f"{name}__gt": now}, then=models.Value(now)), default=F(name))
    return values
