"""Calibration of forecasts and of trades, for the page and the API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from agents.models import Family
from foundation.bulk import mappings_by, subset
from scoring.constants import ALL_METHODOLOGIES, FORECAST, MARKET, SHOWN_REFERENCES, TRADING
from scoring.models import Leaderboard
from scoring.selectors.competition import competition_index

BRIER_PARTS = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")
"""Parts of a Brier score: the first less the second, plus the third and fourth, less the fifth."""
PRICES_PAID = "The prices paid"


@dataclass(frozen=True, slots=True)
class ForecasterCalibration:
    """The reliability diagram of one forecaster, and its figures."""

    forecaster: str
    """A family's slug, or the name of a reference."""
    display_name: str
    family: Family | None
    bins: Sequence[Mapping[str, Any]]
    pairs: int
    ece: float | None
    ece_noise_floor: float | None
    """The calibration error that chance alone gives a calibrated forecaster on as many pairs."""
    brier: float | None
    parts: Mapping[str, float | None]
    """The Brier score's `BRIER_PARTS`, in this order."""


@dataclass(frozen=True, slots=True)
class ProtocolCalibration:
    """The calibration of all forecasters in one protocol; empty without a leaderboard."""

    leaderboard: Leaderboard | None
    forecasters: Sequence[ForecasterCalibration]


@dataclass(frozen=True, slots=True)
class FamilyStakes:
    """The newest bets of a family beside its forecasts of the same markets, and the figures of all of them."""

    family: Family
    points: Sequence[tuple[float, float, bool | None]]
    """Stated probability, implied confidence, and whether the side won."""
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of the forecasts of one arm, methodology and category, and of the trades of that methodology."""

    forecasts: ProtocolCalibration
    trades: ProtocolCalibration
    stakes: Sequence[FamilyStakes]


def calibration(arm: str, methodology: str = ALL_METHODOLOGIES, category: str = "") -> Calibration:
    """The calibration that the stored leaderboards report."""
    families = competition_index().by_slug
    leaderboards = Leaderboard.objects.filter(methodology=methodology)
    forecasts = leaderboards.filter(protocol=FORECAST, arm=arm, category=category).first()
    trades = _stored_bet_calibration(leaderboards.filter(protocol=TRADING, category=""))
    return Calibration(
        ProtocolCalibration(forecasts, list(_calibrated_forecasts(forecasts, families)) if forecasts else []),
        ProtocolCalibration(trades, list(_calibrated_trades(trades, families)) if trades else []),
        list(_stakes(forecasts.report, families)) if forecasts else [],
    )


def _stored_bet_calibration(rows: QuerySet[Leaderboard]) -> Leaderboard | None:
    """A trading leaderboard with the calibration alone: the rest of its report is hundreds of times as long."""
    row = rows.values_list("methodology", "computed_at", "report__calibration").first()
    if row is None:
        return None
    methodology, at, figures = row
    report = {"calibration": figures}
    return Leaderboard(protocol=TRADING, methodology=methodology, computed_at=at, entries=[], report=report)


def _calibrated_forecasts(leaderboard: Leaderboard, families: Mapping[str, Family]) -> Iterator[ForecasterCalibration]:
    curves = leaderboard.report.get("curves", {}).get("reliability", {})
    bins = curves.get("forecasters", {}) | curves.get("references", {})
    murphy = leaderboard.report.get("murphy", {})
    for entry in leaderboard.entries:
        name = entry["forecaster"]
        if not bins.get(name) or (entry["reference"] and name not in SHOWN_REFERENCES):
            continue
        parts = murphy.get(name, {})
        yield ForecasterCalibration(
            forecaster=name,
            display_name=entry["display_name"],
            family=families.get(entry["family"]),
            bins=bins[name],
            pairs=sum(bin["pairs"] for bin in bins[name]),
            ece=entry["ece"],
            ece_noise_floor=entry["ece_noise_floor"],
            brier=parts.get("brier", entry["brier"]),
            parts={part: parts.get(part) for part in BRIER_PARTS},
        )


def _calibrated_trades(leaderboard: Leaderboard, families: Mapping[str, Family]) -> Iterator[ForecasterCalibration]:
    report = leaderboard.report.get("calibration") or {}
    rows = [(families[slug], figures) for slug, figures in report.get("families", {}).items() if slug in families]
    rows.sort(key=lambda row: (row[0].external, row[1]["ece"]))
    market = report.get(MARKET)
    for family, figures in [*rows, *([(None, market)] if market else [])]:
        yield ForecasterCalibration(
            forecaster=family.slug if family else MARKET,
            display_name=family.display_name if family else PRICES_PAID,
            family=family,
            bins=figures["bins"],
            pairs=figures["n"],
            ece=figures["ece"],
            ece_noise_floor=figures["ece_noise_floor"],
            brier=figures["murphy"]["brier"],
            parts=subset(figures["murphy"], BRIER_PARTS),
        )


def _stakes(report: Mapping[str, Any], families: Mapping[str, Family]) -> Iterator[FamilyStakes]:
    figures = mappings_by("family", report.get("forecasts_and_trades", []))
    for slug, points in sorted(report.get("stakes", {}).items()):
        if slug in families and points:
            yield FamilyStakes(families[slug], list(map(tuple, points)), figures[slug])
