"""Proof of both leaderboards: each figure that follows from rows is made of them again."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np

from agents.models.ledger import to_cents
from scoring.exports.proof.reading import Archive, Row, differing
from scoring.exports.proof.scores import Asked
from scoring.metrics.brier import RANDOM_BRIER, skill_score
from scoring.metrics.panel import Panel
from scoring.metrics.uncertainty import (
    bootstrap_means,
    cluster_interval,
    rank_range,
    resample_counts,
    t_interval,
    table_sums,
)
from scoring.ranking.report import rank
from scoring.ranking.settings import Settings
from scoring.services.forecast_panels import AskedEntry, external_panel, panels

FIGURES = ("coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "alpha", "average_return")
METRICS, GAMMAS = ("brier", "log", "spherical", "average_return", "alpha"), ("0", "0.5", "1")


def trading(archive: Archive) -> Iterator[str]:
    """Values, returns with their intervals, pooled scores with theirs, skills, win rates, costs and ranks."""
    if not archive.is_whole:
        return
    stated: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in archive.rows("leaderboard_trading"):
        stated[row["methodology"]][row["family"]] = row
    outside = {family["slug"] for family in archive.rows("families") if family["external"]}
    in_play = {row["methodology"] for row in archive.cohorts.values()}
    costs = _costs(archive)
    scores = archive.grouped("brier_scores", "agent")
    for methodology in ["", *sorted(in_play)]:
        played: dict[str, list[Row]] = defaultdict(list)
        for agent in sorted(archive.agents.values(), key=lambda agent: agent["cohort"]):
            if methodology in ("", archive.cohorts[agent["cohort"]]["methodology"]):
                played[agent["family"]].append(agent)
        board = stated.pop(methodology, {})
        name = f"leaderboard_trading: {methodology or 'all'}"
        if board.keys() != played.keys():
            yield f"{name} lists {sorted(board)}, in play are {sorted(played)}"
            continue
        due = {family: _entry(archive, agents, scores) for family, agents in played.items()}
        for family, figures in due.items():
            figures["cost_usd"] = costs[methodology, family].quantize(Decimal("0.000001"))
            figures |= dict.fromkeys(("rank", "rank_low", "rank_high"))
        ranked = {family: agents for family, agents in played.items() if family not in outside}
        # In the order in which the arena drew them: resamples are shared, and ranks do not depend on it.
        for family, (low, high) in zip(ranked, _rank_ranges(list(ranked.values())), strict=True):
            higher = sum(due[other]["return_percent"] > due[family]["return_percent"] for other in ranked)
            due[family] |= {"rank": 1 + higher, "rank_low": int(low), "rank_high": int(high)}
        for family, figures in due.items():
            yield from differing(f"{name}, {family}", board[family], figures)
    for methodology in stated:
        yield f"leaderboard_trading: {methodology} is no methodology in play"


def _entry(archive: Archive, agents: list[Row], scores: dict[int, list[Row]]) -> Row:
    returns = t_interval([agent["return_percent"] for agent in agents])
    rows = sorted((row for agent in agents for row in scores.get(agent["id"], [])), key=lambda row: row["trade"])
    values = [row["score"] for row in rows]
    pooled: Row = dict.fromkeys(("brier", "brier_ci", "bss_random", "bss_market", "win_rate"))
    if values:
        brier = fmean(values)
        pooled = {
            "brier": brier,
            "brier_ci": _listed(cluster_interval(values, [_event(archive.markets[row["market"]]) for row in rows])),
            "bss_random": skill_score(brier, RANDOM_BRIER),
            "bss_market": skill_score(brier, fmean(row["market_score"] for row in rows)),
            "win_rate": sum(row["outcome"] for row in rows) / len(rows),
        }
    return {
        "cohorts": len(agents),
        "total_value": to_cents(sum((a["total_value"] for a in agents), Decimal(0)) / len(agents)),
        "pnl": sum((a["pnl"] for a in agents), Decimal(0)),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": _listed(returns.interval),
        **pooled,
        "resolved_bets": len(values),
    }


def _listed(interval: Any) -> list[float] | None:
    return None if interval is None else list(interval)


def _event(market: Row) -> str:
    return f"{market['source']}:{market['event_id']}" if market["event_id"] else f"market:{market['id']}"


def _costs(archive: Archive) -> dict[tuple[str, str], Decimal]:
    costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for call in archive.rows("calls"):
        if call["decision"] is not None:
            agent = archive.agents[archive.decisions[call["decision"]]["agent"]]
            for methodology in ("", archive.cohorts[agent["cohort"]]["methodology"]):
                costs[methodology, agent["family"]] += call["cost_usd"]
    return costs


def _rank_ranges(played: list[list[Row]]) -> Any:
    cohorts = sorted({agent["cohort"] for agents in played for agent in agents})
    returns = np.full((len(played), len(cohorts)), np.nan)
    for row, agents in enumerate(played):
        for agent in agents:
            returns[row, cohorts.index(agent["cohort"])] = agent["return_percent"]
    sums = table_sums(returns)
    draws = bootstrap_means(sums, resample_counts(sums.sums.shape[1]))
    return rank_range(draws, sums.means, lower_is_better=False)


def forecast(archive: Archive) -> Iterator[str]:
    """Scores by arm, methodology and category, with intervals and ranks, of families and references."""
    if not archive.is_whole:
        return
    asked = Asked(archive)
    key = ("arm", "methodology", "category")
    rows = sorted(archive.rows("leaderboard_forecast"), key=lambda row: [row[name] for name in key])
    missing = {(sheet["arm"], "", "") for sheet in asked.sheets.values()}
    for (arm, methodology, category), board in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        missing.discard((arm, methodology, category))
        entries = asked.resolved(arm, methodology)
        entries = [entry for entry in entries if category in ("", entry.category)]
        due = _board(entries, asked.families(arm, methodology), asked.families(arm, methodology, external=True))
        stated = {row["forecaster"]: row for row in board}
        name = f"leaderboard_forecast: {arm} {methodology or 'all'} {category}".strip()
        if stated.keys() != due.keys():
            yield f"{name} lists {sorted(stated)}, asked were {sorted(due)}"
            continue
        for forecaster, figures in due.items():
            yield from differing(f"{name}, {forecaster}", stated[forecaster], figures)
            published = {figure: stated[forecaster][figure] for figure in ("rank", *FIGURES)}
            yield from differing(f"{name}, figures of {forecaster}", stated[forecaster]["figures"], published)
    for arm, *_ in sorted(missing):
        yield f"leaderboard_forecast: there is no board of {arm}"


def _board(entries: list[AskedEntry], families: list[str], externals: list[str]) -> dict[str, Row]:
    made = panels(entries, families)
    found = rank(made.families, Settings(METRICS, GAMMAS), guests=made.references)
    everybody = found["forecasters"] | found["references"]
    answered = _answered(made.families, entries) | _answered(made.references, entries)
    if externals:
        outside = external_panel(entries, externals)
        everybody |= rank(made.families, Settings(METRICS, GAMMAS), guests=outside)["references"]
        answered |= _answered(outside, entries)
    briers = [f["brier"] for f in found["forecasters"].values() if f["brier"] is not None]
    due = {}
    for name, figures in everybody.items():
        low, high = figures["rank_range"] or (None, None)
        score = figures["brier"]
        due[name] = {
            "reference": name in found["references"],
            "external": name in externals,
            "rank": None
            if name in externals
            else 1 + (len(briers) if score is None else sum(other < score for other in briers)),
            "rank_low": low,
            "rank_high": high,
            "n": answered.get(name, 0),
            "forecasts": figures["n"],
            **{figure: figures.get(figure) for figure in FIGURES},
        }
    return due


def _answered(panel: Panel, entries: list[AskedEntry]) -> dict[str, int]:
    """On how many questions each one stated something, a question of several days counted once."""
    questions: dict[str, set[int]] = defaultdict(set)
    for who, entry in zip(panel.forecaster.tolist(), panel.question.tolist(), strict=True):
        questions[panel.forecasters[who]].add(entries[entry].question)
    return {name: len(asked) for name, asked in questions.items()}
