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
from arena_verifier.trading_leaderboard import bet_figures, weekly_returns

LEAST_QUESTIONS, LEAST_DECISIONS, LEAST_COVERAGE = 25, 4, 0.5
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
        pooled = bet_figures(tables, rows, bets)
        board[slug] = {
            "score": mean, "score_ci": None if half is None else [mean - half, mean + half], "cohorts": len(rows),
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
