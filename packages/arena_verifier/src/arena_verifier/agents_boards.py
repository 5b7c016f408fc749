"""The boards of external agents: who is ranked, by which scores, and what each was asked and answered."""

from collections import defaultdict
from statistics import fmean
from typing import Any

from arena_verifier.forecast_leaderboards import (
    adjusted_scores,
    answered_entries,
    forecaster_figures,
    forecasts_by_entry,
    scored_forecasts,
)
from arena_verifier.intervals import rank_ranges, return_error
from arena_verifier.rows import Row, Tables, Violations, cents, mismatches
from arena_verifier.scores import TIE, QuestionRecords
from arena_verifier.trading_leaderboard import bet_figures, event_of, weekly_returns

LEAST_QUESTIONS, LEAST_DECISIONS, LEAST_COVERAGE = 25, 4, 0.5
LINES = ("market", "uniform")
BETS = ("win_rate", "resolved_bets")


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
                violations.extend(mismatches(f"{name}, {forecaster}", board[forecaster], figures))
    violations.extend(f"leaderboard_agents: {' '.join(key)} is the board of no agent" for key in boards)


def forecast_board(tables: Tables, agents: set[str]) -> dict[str, Row]:
    """The figures of agents, of models and of market and uniform on the questions that one of the agents answered."""
    records, families, by_entry = QuestionRecords(tables), tables.by("families", "slug"), forecasts_by_entry(tables)
    board_arm, tasks = tables.board_condition(), defaultdict(list)
    for task in tables.by("elicitations").values():
        batch = tables.by("question_batches")[task["batch"]]
        if batch["arm"] == board_arm and task["family"] in agents:
            tasks[task["family"]].append(task)
    attempts = defaultdict(list)
    for attempt in tables.rows("attempts"):
        if attempt["batch"] is not None and tables.by("question_batches")[attempt["batch"]]["arm"] == board_arm:
            attempts[attempt["family"]].append(attempt)
    first: dict[str, int] = {}
    for (entry, arm), forecasts in by_entry.items():
        for forecast in forecasts if arm == board_arm else ():
            first[forecast["family"]] = min(entry, first.get(forecast["family"], entry))
    common, questions_by_agent = [], defaultdict(set)
    models = {slug for slug, row in families.items() if not row["external"]}
    for item in answered_entries(tables, records, board_arm):
        for slug in agents & first.keys():
            if item.entry["id"] >= first[slug]:
                questions_by_agent[slug].add(item.question["id"])
        if not agents.isdisjoint(item.vectors):
            common.append(item.only(agents | models))
    scored = scored_forecasts(records, families, common)
    adjusted = adjusted_scores(scored, [name for name in scored if name in families])
    board: dict[str, Row] = {}
    for name in {*scored, *tasks}:
        if name in families or name in LINES:
            means = forecaster_figures(scored[name], set())
            board[name] = {"answered": means["n"], "brier": means["brier"], "alpha": means["alpha"]}
            board[name]["score"] = adjusted.get(name)
    for slug in tasks:
        answered = board[slug]["answered"]
        board[slug] |= participation(answered, len(questions_by_agent[slug]), tasks[slug], attempts[slug])
    rank_agents(board, agents, LEAST_QUESTIONS, sign=1)
    return board


def trading_board(tables: Tables, agents: set[str]) -> dict[str, Row]:
    """The figures of agents and of models in the cohorts in which one of the agents takes part."""
    families, markets, universes = tables.by("families", "slug"), tables.by("markets"), tables.by("universes")
    cohorts = {row["cohort"] for row in tables.by("agents").values() if row["family"] in agents}
    players, tasks = defaultdict(list), defaultdict(list)
    for row in tables.by("agents").values():
        if row["cohort"] in cohorts and (row["family"] in agents or not families[row["family"]]["external"]):
            players[row["family"]].append(row)
    for decision in tables.by("decisions").values():
        slug = tables.by("agents")[decision["agent"]]["family"]
        if slug in agents and decision["universe"] is not None:
            tasks[slug].append(decision)
    attempts = defaultdict(list)
    for attempt in tables.rows("attempts"):
        if attempt["universe"] is not None:
            attempts[attempt["family"]].append(attempt)
    bets, weeks, board = tables.grouped("brier_scores", "agent"), weekly_returns(tables), {}
    weeks_of: dict[str, Any] = {}
    for slug, rows in players.items():
        weeks_of[slug] = {row["cohort"]: weeks[row["id"]] for row in rows}
        mean, (_, half) = fmean(row["return_percent"] for row in rows), return_error(weeks_of[slug])
        scores: list[Row] = []
        for row in rows:
            scores += bets.get(row["id"], [])
        pooled = bet_figures(scores, [event_of(markets[bet["market"]]) for bet in scores])
        board[slug] = {
            "score": mean, "score_ci": None if half is None else [mean - half, mean + half], "cohorts": len(rows),
            "total_value": cents(sum(row["total_value"] for row in rows) / len(rows)),
            "pnl": sum(row["pnl"] for row in rows), **{name: pooled[name] for name in BETS},
        }  # fmt: skip
        if slug in agents:
            times = [universes[t["universe"]]["frozen_at"] for t in tasks[slug] if t["status"] == "completed"]
            tasks_since_first = []
            for task in tasks[slug]:
                if times and universes[task["universe"]]["frozen_at"] >= min(times):
                    tasks_since_first.append(task)
            board[slug] |= participation(len(times), len(tasks_since_first), tasks[slug], attempts[slug])
    ranked = rank_agents(board, agents, LEAST_DECISIONS, sign=-1)
    for slug, (low, high) in rank_ranges({slug: weeks_of[slug] for slug in ranked}).items():
        board[slug] |= {"rank_low": low, "rank_high": high}
    return board


def participation(answered: int, expected: int, tasks: list[Row], attempts: list[Row]) -> Row:
    """How many of the tasks since its first answer an agent answered, and its failures."""
    states = [task["status"] for task in tasks]
    reported = [attempt for attempt in attempts if attempt["origin"] == "agent"]
    late = [attempt for attempt in attempts if attempt["origin"] == "arena" and attempt["kind"] == "late"]
    return {
        "answered": answered, "asked": expected, "coverage": answered / expected if expected else None,
        "failed": states.count("failed"), "missed": states.count("missed"),
        "refused": sum(task["refusals"] for task in tasks), "late": len(late), "reported": len(reported),
    }  # fmt: skip


def rank_agents(board: dict[str, Row], agents: set[str], least: int, *, sign: int) -> list[str]:
    """Gives each row its rank; returns those that have one, in the board's order. Less is better with a `sign` of 1."""
    ranked = []
    for name, row in board.items():
        row["rank"] = None
        if name in agents and least <= row["answered"] >= LEAST_COVERAGE * row["asked"]:
            ranked.append(name)
    for name in ranked:
        score = sign * board[name]["score"]
        board[name]["rank"] = 1 + sum(sign * board[rival]["score"] < score - TIE for rival in ranked)
    return ranked
