"""Who says, and who stakes, as much as happens: one function for the page and the API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.models import Family
from cohorts.forecasting import PRICED
from scoring.models import Leaderboard
from scoring.roster import roster
from scoring.services.bet_calibration import MARKET
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.services.forecast_panels import REFERENCES

PARTS = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")
"""What a Brier score is made of: the first less the second, plus the third and fourth, less the fifth."""
SHOWN_REFERENCES = REFERENCES[:3]
PRICES_PAID = "The prices paid"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """How calibrated one forecaster is: its bins, and the figures of them."""

    forecaster: str
    """A family's slug, or the name of a reference."""
    name: str
    family: Family | None
    bins: Sequence[Mapping[str, Any]]
    pairs: int
    ece: float | None
    floor: float | None
    """The error that chance alone gives a calibrated forecaster on as many."""
    brier: float | None
    murphy: Mapping[str, float | None]

    @property
    def parts(self) -> list[float | None]:
        return [self.murphy[part] for part in PARTS]


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a family staked beside what it said: its newest bets, and the figures of all of them."""

    family: Family
    points: Sequence[tuple[float, float, bool | None]]
    """(stated probability, implied confidence, did the side win)"""
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Words of one arm, methodology and category, and the bets of that methodology; empty where nothing resolved."""

    words_board: int | None
    words_computed_at: datetime | None
    words: Sequence[Calibrated]
    bets_computed_at: datetime | None
    bets: Sequence[Calibrated]
    stakes: Sequence[Stakes]


def calibration(arm: str = PRICED, methodology: str = ALL_METHODOLOGIES, category: str = "") -> Calibration:
    """The reliability of words and of bets as the boards on record have it, and stakes beside words."""
    families = roster().by_slug
    boards = Leaderboard.objects.filter(methodology=methodology)
    words = boards.filter(protocol=FORECAST, arm=arm, category=category).first()
    bets = boards.filter(protocol=TRADING, category="").first()
    return Calibration(
        words.pk if words else None,
        words.computed_at if words else None,
        list(_of_words(words, families)) if words else [],
        bets.computed_at if bets else None,
        list(_of_bets(bets.report.get("calibration") or {}, families)) if bets else [],
        list(_stakes(words.report if words else {}, families)),
    )


def _of_words(board: Leaderboard, families: Mapping[str, Family]) -> Iterator[Calibrated]:
    curves = board.report.get("curves", {}).get("reliability", {})
    bins = curves.get("forecasters", {}) | curves.get("references", {})
    murphy = board.report.get("murphy", {})
    for entry in board.entries:
        name = entry["forecaster"]
        found = bins.get(name)
        if not found or (entry["reference"] and name not in SHOWN_REFERENCES):
            continue
        parts = murphy.get(name, {})
        yield Calibrated(
            name,
            entry["display_name"],
            families.get(entry["family"]),
            found,
            sum(each["pairs"] for each in found),
            entry["ece"],
            entry["ece_noise_floor"],
            parts.get("brier", entry["brier"]),
            {part: parts.get(part) for part in PARTS},
        )


def _of_bets(report: Mapping[str, Any], families: Mapping[str, Family]) -> Iterator[Calibrated]:
    rows = [(families.get(slug), found) for slug, found in report.get("families", {}).items()]
    known = [(family, found) for family, found in rows if family]
    known.sort(key=lambda row: (row[0].external, row[1]["ece"]))
    market = report.get(MARKET)
    for family, found in [*known, *([(None, market)] if market else [])]:
        yield Calibrated(
            family.slug if family else MARKET,
            family.display_name if family else PRICES_PAID,
            family,
            found["bins"],
            found["n"],
            found["ece"],
            found["ece_noise_floor"],
            found["murphy"]["brier"],
            {part: found["murphy"][part] for part in PARTS},
        )


def _stakes(report: Mapping[str, Any], families: Mapping[str, Family]) -> Iterator[Stakes]:
    figures = {row["family"]: row for row in report.get("words_and_bets", [])}
    for slug, points in sorted(report.get("spoken", {}).items()):
        family = families.get(slug)
        if family and points:
            yield Stakes(family, [(said, staked, won) for said, staked, won in points], figures[slug])
