"""Proof of scores: each follows from what was said or staked and what happened."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from scoring.exports.proof.reading import Archive, Row, differing
from scoring.metrics.brier import brier_score
from scoring.metrics.proper import accuracy, brier, log_score, spherical
from scoring.metrics.skill import market_brier
from scoring.services.forecast_panels import AskedEntry, Said, asked_entry, one_by_one

BATCH = 1_000


def bets(archive: Archive) -> Iterator[str]:
    """Each purchase on a market with a winner has its Brier score, and no other trade has one."""
    scored = set()
    for score in archive.rows("brier_scores"):
        row = f"brier_scores: of trade {score['trade']}"
        if score["trade"] in scored:
            yield f"{row}: there are two"
        scored.add(score["trade"])
        trade, market = archive.trades.get(score["trade"]), archive.markets[score["market"]]
        if trade is None:
            if not archive.is_window:
                yield f"{row}: the trade is not in the archive"
            continue
        won, price = trade["outcome"] == market["winning_outcome"], float(trade["price"])
        if market["status"] != "resolved" or trade["kind"] != "BUY" or trade["market"] != score["market"]:
            yield f"{row}: a {trade['kind']} on market {trade['market']}; market {market['id']} is {market['status']}"
            continue
        confidence = trade["implied_confidence"]
        due = {
            "agent": trade["agent"],
            "probability": confidence,
            "outcome": won,
            "score": float(brier_score(confidence, won)),
            "market_probability": price,
            "market_score": float(brier_score(price, won)),
        }
        yield from differing(row, score, due)
    if archive.is_window:
        return
    for pk, trade in archive.trades.items():
        if trade["kind"] == "BUY" and archive.markets[trade["market"]]["status"] == "resolved" and pk not in scored:
            yield f"brier_scores: trade {pk} has none, and its market is resolved"


class Asked:
    """The questions of an archive on the days they were asked, with what was said of them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.questions = archive.by_id("questions")
        self.options: dict[int, list[tuple[str, bool | None]]] = {}
        for row in archive.rows("question_options"):
            self.options.setdefault(row["question"], []).append((row["name"], row["happened"]))
        self.entries = archive.by_id("question_entries")
        self.sets = archive.by_id("question_sets")
        self.sheets = archive.by_id("question_sheets")
        self.elicitations = archive.by_id("elicitations")
        self.releases = archive.by_id("releases")
        self.outside = {family["slug"] for family in archive.rows("families") if family["external"]}
        self.forecasts: dict[int, Row] = {}
        for row in archive.rows("forecasts"):
            self.forecasts[row["id"]] = {**row, "rationale": None, "stated": None}

    def entry(self, pk: int) -> AskedEntry:
        """An entry as the metrics take it, with nothing said of it yet."""
        entry = self.entries[pk]
        question = self.questions[entry["question"]]
        closed = question["closed_at"]
        return asked_entry(
            pk,
            question["id"],
            self.options[question["id"]],
            entry["prices"],
            event=question["event_key"],
            category=question["category"],
            exclusive=question["exclusive"],
            closed_at=datetime.fromisoformat(closed) if closed else None,
        )

    def vector(self, forecast: Row) -> Any:
        names = [name for name, _ in self.options[forecast["question"]]]
        return np.array([forecast["probabilities"][name] for name in names], dtype=np.float64)

    def resolved(self, arm: str, methodology: str) -> list[AskedEntry]:
        """Every resolved question on each day it was asked in an arm, with what families said."""
        asked_in = {(s["question_set"], s["number"]) for s in self.sheets.values() if s["arm"] == arm}
        chosen = [
            entry
            for entry in self.entries.values()
            if (entry["question_set"], entry["sheet"]) in asked_in
            and self.questions[entry["question"]]["status"] == "resolved"
            and methodology in ("", self.sets[entry["question_set"]]["methodology"])
        ]
        chosen.sort(key=lambda entry: (self.sets[entry["question_set"]]["day"], entry["id"]))
        made = {entry["id"]: self.entry(entry["id"]) for entry in chosen}
        said = [f for f in self.forecasts.values() if f["arm"] == arm and f["entry"] in made]
        # Where two releases of a family answered the same sheet, the newer one speaks for it.
        said.sort(key=lambda f: (self.releases[f["release"]]["effective_from"], f["release"], f["id"]))
        for forecast in said:
            entry = made[forecast["entry"]]
            where = entry.apart if forecast["family"] in self.outside else entry.said
            where[forecast["family"]] = Said(forecast["id"], self.vector(forecast))
        return list(made.values())

    def families(self, arm: str, methodology: str, *, external: bool = False) -> list[str]:
        """Who stands on a board: every active family, and whoever was asked, in the order of their ids."""
        sheets = {pk for pk, sheet in self.sheets.items() if sheet["arm"] == arm}
        asked = {
            task["family"]
            for task in self.elicitations.values()
            if task["sheet"] in sheets and methodology in ("", task["methodology"])
        }
        families = sorted(self.archive.rows("families"), key=lambda family: family["id"])
        families = [family for family in families if family["external"] == external]
        return [family["slug"] for family in families if family["active"] or family["slug"] in asked]


def forecasts(archive: Archive) -> Iterator[str]:
    """Each forecast on a resolved question has the scores that its probabilities make."""
    asked = Asked(archive)
    scores = {row["forecast"]: row for row in archive.rows("forecast_scores")}
    for pk, forecast in asked.forecasts.items():
        resolved = asked.questions[forecast["question"]]["status"] == "resolved"
        if resolved != (pk in scores) and not archive.is_window:
            yield f"forecast_scores: forecast {pk} has {'none' if resolved else 'some'}, its question says otherwise"
        stated = _ownership(asked, forecast)
        if stated is not None:
            yield stated
    rest = iter(scores.items())
    while batch := list(islice(rest, BATCH)):
        said = [asked.forecasts[pk] for pk, _ in batch]
        panel = one_by_one([(asked.entry(row["entry"]), asked.vector(row)) for row in said])
        columns = [measure(panel).tolist() for measure in (brier, log_score, spherical, accuracy, market_brier)]
        names = ("brier", "log", "spherical", "accuracy", "market_brier")
        for (pk, score), *figures in zip(batch, *columns, strict=True):
            due = {name: None if np.isnan(f) else f for name, f in zip(names, figures, strict=True)}
            yield from differing(f"forecast_scores: of forecast {pk}", score, due)


def _ownership(asked: Asked, forecast: Row) -> str | None:
    """What is wrong with whose forecast it says it is; None where nothing is."""
    task = asked.elicitations.get(forecast["elicitation"])
    if task is None:
        return None
    stated = tuple(forecast[name] for name in ("family", "release", "methodology", "made_at"))
    if stated != tuple(task[name] for name in ("family", "release", "methodology", "made_at")):
        return f"forecasts: forecast {forecast['id']} is another's than its elicitation {task['id']}"
    if asked.entries[forecast["entry"]]["question"] != forecast["question"]:
        return f"forecasts: forecast {forecast['id']} is on another question than its entry"
    return None
