"""The boards of external agents: who is ranked, by which scores, and what each was asked and answered."""

import math
from collections import Counter, defaultdict
from statistics import fmean
from typing import Any

from arena_verifier.forecast_leaderboards import (
    EQUAL_COVERAGE,
    AnsweredEntry,
    EntryScores,
    answered_entries,
    forecaster_figures,
    forecasts_by_entry,
    scored_forecasts,
    two_way_fit,
)
from arena_verifier.intervals import rank_ranges, return_error, return_interval
from arena_verifier.rows import Row, Tables, Violations, cents, mismatches
from arena_verifier.scores import TIE, QuestionRecords
from arena_verifier.trading_leaderboard import bet_figures, scored_bets
from arena_verifier.weeks import weekly_returns

LEAST_QUESTIONS, LEAST_DECISIONS, LEAST_COVERAGE = 25, 4, 0.5
PRICE_ALPHA, PRICE_DISTANCE, NO_DISTANCE = 0.005, 0.02, 1e-9
LINES = ("market", "uniform")


def check_agents_boards(tables: Tables, violations: Violations) -> None:
    """Ranks, scores, answers and attempts by track; of forecasts not the intervals and rank ranges."""
    families = tables.by("families", "slug")
    boards: dict[Any, dict[str, Row]] = defaultdict(dict)
    for row in tables.rows("leaderboard_agents"):
        boards[row["track"], row["protocol"]][row["forecaster"]] = row
    for track in sorted({row["track"] for row in families.values() if row["external"]}):
        agents = {slug for slug, row in families.items() if row["external"] and row["track"] == track}
        for protocol, computed in (
            ("forecast", forecast_board(tables, agents)),
            ("trading", trading_board(tables, agents)),
        ):
            board, name = boards.pop((track, protocol), {}), f"leaderboard_agents: {track} {protocol}"
            if board.keys() != computed.keys():
                violations.append(f"{name} lists {sorted(board)}, on it are {sorted(computed)}")
                continue
            for forecaster, figures in computed.items():
                figures |= {"external": forecaster in agents, "reference": forecaster not in families}
                if protocol == "forecast" and forecaster in agents:
                    interval = board[forecaster]["alpha_ci"]
                    figures["repeats_price"] = repeats_price(interval, figures["price_distance"])
                violations.extend(mismatches(f"{name}, {forecaster}", board[forecaster], figures))
    violations.extend(f"leaderboard_agents: {' '.join(key)} is the board of no agent" for key in boards)


def forecast_board(tables: Tables, agents: set[str]) -> dict[str, Row]:
    """The figures of agents, of models and of market and uniform on the questions that one of the agents answered."""
    records, families, board_arm = QuestionRecords(tables), tables.by("families", "slug"), tables.board_condition()
    batches = {pk for pk, batch in tables.by("question_batches").items() if batch["arm"] == board_arm}
    tasks, attempts = defaultdict(list), defaultdict(list)
    for task in tables.by("elicitations").values():
        if task["batch"] in batches and task["family"] in agents:
            tasks[task["family"]].append(task)
    for attempt in tables.rows("attempts"):
        if attempt["batch"] in batches:
            attempts[attempt["family"]].append(attempt)
    first = first_entries(tables, board_arm)
    answered_items, questions_by_agent = [], defaultdict(set)
    models = {slug for slug, row in families.items() if not row["external"]}
    for item in answered_entries(tables, records, board_arm):
        for slug in agents & first.keys():
            if item.entry["id"] >= first[slug]:
                questions_by_agent[slug].add(item.question["id"])
        answered_items.append(item.only(agents | models))
    common = [item for item in answered_items if not agents.isdisjoint(item.vectors)]
    scored = scored_forecasts(records, families, common)
    scores = scores_beside(scored_forecasts(records, families, answered_items), [*models, *LINES])
    distances = price_distances(answered_items)
    board: dict[str, Row] = {}
    for name in {*scored, *tasks}:
        if name in families or name in LINES:
            means = forecaster_figures(scored[name], set())
            board[name] = {"answered": means["n"], "brier": means["brier"], "alpha": means["alpha"]}
            board[name] |= {"score": scores.get(name), "ranked_by": "", "price_distance": None}
    for slug in tasks:
        answered = board[slug]["answered"]
        board[slug]["price_distance"] = distances.get(slug)
        board[slug] |= participation(answered, len(questions_by_agent[slug]), tasks[slug], attempts[slug])
    rank_forecasters(board, agents)
    return board


def scores_beside(scored: dict[str, list[EntryScores]], base: list[str]) -> dict[str, float]:
    """Each forecaster's mean score less the entries' difficulties, which follow from the base forecasters alone."""
    fit = two_way_fit({name: scored[name] for name in base if scored.get(name)})
    total: dict[int, float] = defaultdict(float)
    mass: dict[int, float] = defaultdict(float)
    for name, value in fit.items():
        for weight, forecast in weighted(scored[name]):
            total[forecast.entry] += weight * (forecast.scores.brier - value)
            mass[forecast.entry] += weight
    scores = {}
    for name, forecasts in scored.items():
        above, below = [], []
        for weight, forecast in weighted(forecasts):
            if forecast.entry in mass:
                difficulty = total[forecast.entry] / mass[forecast.entry]
                above.append(weight * (forecast.scores.brier - difficulty))
                below.append(weight)
        if below:
            scores[name] = math.fsum(above) / math.fsum(below)
    return scores


def weighted(forecasts: list[EntryScores]) -> list[tuple[float, EntryScores]]:
    """Forecasts with their weights: one by the number of the forecaster's forecasts of the question."""
    times_asked = Counter(forecast.question for forecast in forecasts)
    return [(1 / times_asked[forecast.question], forecast) for forecast in forecasts]


def price_distances(items: list[AnsweredEntry]) -> dict[str, float]:
    """Each family's mean distance to the market's probabilities, where there is a price; a question weighs one."""
    gaps: dict[str, list[tuple[Any, float]]] = defaultdict(list)
    times_asked: Counter[tuple[str, Any]] = Counter()
    for item in items:
        for slug, vector in item.vectors.items():
            times_asked[slug, item.question["id"]] += 1
            if item.market is not None:
                gap = fmean(abs(p - price) for p, price in zip(vector, item.market, strict=True))
                gaps[slug].append((item.question["id"], gap))
    distances = {}
    for slug, rows in gaps.items():
        weights = [1 / times_asked[slug, question] for question, _ in rows]
        distances[slug] = math.fsum(w * gap for w, (_, gap) in zip(weights, rows, strict=True)) / math.fsum(weights)
    return distances


def repeats_price(alpha_interval: list[float] | None, distance: float | None) -> bool | None:
    """Whether a forecaster only repeats the price; None where too little is known of it."""
    if distance is None:
        return None
    if alpha_interval is None:  # of too few events, or of an alpha that never differs
        return True if distance < NO_DISTANCE else None
    return max(map(abs, alpha_interval)) <= PRICE_ALPHA and distance < PRICE_DISTANCE


def rank_forecasters(board: dict[str, Row], agents: set[str]) -> None:
    """Ranks by the adjusted score, or by alpha where the ranked agents answered different questions."""
    ranked = rank_agents(board, agents, LEAST_QUESTIONS, sign=1)
    numbers = [board[name]["answered"] for name in ranked]
    differs = bool(numbers) and min(numbers) < EQUAL_COVERAGE * max(numbers)
    by_alpha = differs and all(board[name]["alpha"] is not None for name in ranked)
    if by_alpha:
        rank_agents(board, agents, LEAST_QUESTIONS, sign=-1, key="alpha")
    for name in ranked:
        board[name]["ranked_by"] = "alpha" if by_alpha else "adjusted_brier"


def first_entries(tables: Tables, board_arm: str) -> dict[str, int]:
    """The first entry that each family answered in an arm."""
    first: dict[str, int] = {}
    for (entry, arm), forecasts in forecasts_by_entry(tables).items():
        if arm == board_arm:
            for forecast in forecasts:
                first[forecast["family"]] = min(entry, first.get(forecast["family"], entry))
    return first


def trading_board(tables: Tables, agents: set[str]) -> dict[str, Row]:
    """The figures of agents and of models in the cohorts in which one of the agents takes part."""
    families, accounts = tables.by("families", "slug"), tables.by("agents").values()
    cohorts = {row["cohort"] for row in accounts if row["family"] in agents}
    players = defaultdict(list)
    for row in accounts:
        if row["cohort"] in cohorts and (row["family"] in agents or not families[row["family"]]["external"]):
            players[row["family"]].append(row)
    bets, by_week = tables.grouped("brier_scores", "agent"), weekly_returns(tables)
    board, weeks = {}, {}
    for slug, rows in players.items():
        weeks[slug] = {row["cohort"]: by_week[row["id"]] for row in rows}
        mean, (_, half) = fmean(row["return_percent"] for row in rows), return_error(weeks[slug])
        pooled = bet_figures(scored_bets(tables, rows, bets))
        board[slug] = {
            "score": mean, "score_ci": return_interval(mean, half),
            "cohorts": len(rows),
            "total_value": cents(sum(row["total_value"] for row in rows) / len(rows)),
            "pnl": sum(row["pnl"] for row in rows),
            "win_rate": pooled["win_rate"], "resolved_bets": pooled["resolved_bets"],
        }  # fmt: skip
    for slug, figures in decision_participation(tables, agents).items():
        board[slug] |= figures
    ranked = rank_agents(board, agents, LEAST_DECISIONS, sign=-1)
    for slug, (low, high) in rank_ranges({slug: weeks[slug] for slug in ranked}).items():
        board[slug] |= {"rank_low": low, "rank_high": high}
    return board


def decision_participation(tables: Tables, agents: set[str]) -> dict[str, Row]:
    """How many of the decisions since its first one each agent made, and its failures."""
    tasks, attempts, rows = defaultdict(list), defaultdict(list), {}
    for decision in tables.by("decisions").values():
        if decision["universe"] is not None:
            tasks[tables.by("agents")[decision["agent"]]["family"]].append(decision)
    for attempt in tables.rows("attempts"):
        if attempt["universe"] is not None:
            attempts[attempt["family"]].append(attempt)
    for slug in agents & {row["family"] for row in tables.by("agents").values()}:
        freezes = [tables.by("universes")[task["universe"]]["frozen_at"] for task in tasks[slug]]
        answered = []
        for task, frozen_at in zip(tasks[slug], freezes, strict=True):
            if task["status"] == "completed":
                answered.append(frozen_at)
        expected = sum(frozen_at >= min(answered) for frozen_at in freezes) if answered else 0
        rows[slug] = participation(len(answered), expected, tasks[slug], attempts[slug])
    return rows


def participation(answered: int, expected: int, tasks: list[Row], attempts: list[Row]) -> Row:
    """How many of the tasks since its first answer an agent answered, and its failures."""
    states = [task["status"] for task in tasks]
    late = sum(attempt["kind"] == "late" for attempt in attempts)
    return {
        "answered": answered, "asked": expected, "coverage": answered / expected if expected else None,
        "failed": states.count("failed"), "missed": states.count("missed"),
        "refused": sum(task["refusals"] for task in tasks), "late": late,
    }  # fmt: skip


def rank_agents(board: dict[str, Row], agents: set[str], least: int, *, sign: int, key: str = "score") -> list[str]:
    """Gives each row its rank; returns those that have one, in the board's order. Less is better with a `sign` of 1."""
    ranked = []
    for name, row in board.items():
        row["rank"] = None
        if name in agents and least <= row["answered"] >= LEAST_COVERAGE * row["asked"]:
            ranked.append(name)
    for name in ranked:
        figure = sign * board[name][key]
        board[name]["rank"] = 1 + sum(sign * board[rival][key] < figure - TIE for rival in ranked)
    return ranked
