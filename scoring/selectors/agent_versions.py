"""The record of an external agent by its versions."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import starmap
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, Sum

from agents.models import AgentVersion, Family, Forecast
from scoring.selectors.competition import competition_index


class ScoredAnswer(NamedTuple):
    """The sums over the scored forecasts of one answer; those with a market's score apart."""

    at: datetime
    forecasts: int
    brier: float
    priced: int
    priced_brier: float | None
    market_brier: float | None


class VersionRecord(NamedTuple):
    """An agent's results with one of its versions."""

    version: AgentVersion
    forecasts: int
    brier: float | None
    alpha: float | None
    weeks: int
    weekly_return: float | None


def scored_answers(family: Family) -> list[ScoredAnswer]:
    """An agent's answers with forecasts on resolved questions, by time."""
    arm = competition_index().conditions.board()
    forecasts = Forecast.objects.counted().filter(family=family, arm=arm, score__isnull=False)
    priced = Q(score__market_brier__isnull=False)
    rows = forecasts.order_by("made_at").values_list("made_at").annotate(
        Count("pk"),
        Sum("score__brier"),
        priced=Count("pk", filter=priced),
        priced_brier=Sum("score__brier", filter=priced),
        market_brier=Sum(F("score__market_brier")),
    )  # fmt: skip
    return list(starmap(ScoredAnswer, rows))


def version_records(
    versions: Sequence[AgentVersion],
    answers: Sequence[ScoredAnswer],
    weeks: Mapping[str, Mapping[str, float]],
) -> list[VersionRecord]:
    """The record of each version (the oldest first): an answer, or a week of trading, counts for the one then in force.

    `weeks` are returns in per cent by cohort and by the date of the week's Sunday.
    """
    beginnings = list(map(attrgetter("began_at"), versions))
    answers_of: dict[int, list[ScoredAnswer]] = defaultdict(list)
    returns_of: dict[int, list[float]] = defaultdict(list)
    for answer in answers:
        answers_of[_place(beginnings, answer.at)].append(answer)
    for by_week in weeks.values():
        for sunday, value in by_week.items():
            at = datetime.fromisoformat(sunday).replace(tzinfo=UTC)
            returns_of[_place(beginnings, at)].append(value)
    records = []
    for place, version in enumerate(versions):
        answers_of_version, returns = answers_of[place], returns_of[place]
        forecasts = sum(map(attrgetter("forecasts"), answers_of_version))
        priced = sum(map(attrgetter("priced"), answers_of_version))
        gain = sum((answer.market_brier or 0) - (answer.priced_brier or 0) for answer in answers_of_version)
        records.append(
            VersionRecord(
                version,
                forecasts,
                sum(map(attrgetter("brier"), answers_of_version)) / forecasts if forecasts else None,
                gain / priced if priced else None,
                len(returns),
                fmean(returns) if returns else None,
            )
        )
    return records


def _place(beginnings: Sequence[Any], at: datetime) -> int:
    """The index of the version in force; what came before the first counts for it."""
    return max(0, bisect_right(beginnings, at) - 1)
