"""The figures of the reports on time, costs and risk: means of scores, of costs, and of weekly returns."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import accumulate, pairwise
from statistics import fmean, stdev
from typing import Any

from arena_verifier.forecast_leaderboards import (
    AnsweredEntry,
    adjusted_ranking,
    answered_entries,
    forecaster_figures,
    scored_forecasts,
)
from arena_verifier.rows import Row, Tables, Violations, same
from arena_verifier.scores import QuestionRecords
from arena_verifier.trading_leaderboard import cohort_results, weekly_returns

REPORT_FIGURES, FULL = "report_figures", 100.0
DAYS_AHEAD, EARLY_DAYS, SECONDS_A_DAY = (0, 1, 3, 7, 14, 30, math.inf), 14, 86_400
OF_TIME, OF_COSTS = ("n", "brier", "alpha", "adjusted_brier"), ("n", "score")
USAGE = ("cost_usd", "search_cost_usd", "latency_ms", "tokens_input", "tokens_output")
OF_RISK = ("weeks", "worst_drawdown", "weekly_volatility", "sharpe")


def check_report_figures(tables: Tables, violations: Violations) -> None:
    """The values on time, costs and risk follow from other tables, but for revisions, locked capital and luck."""
    archived: dict[tuple[str, ...], float] = {}
    for row in tables.rows(REPORT_FIGURES):
        if row["report"] in ("time", "costs", "risk"):
            archived[tuple(row[name] for name in ("report", "arm", "forecaster", "part", "figure"))] = row["value"]
    for key, figures in report_rows(tables):
        for figure, value in figures.items():
            stated = archived.pop((*key, figure), None)
            if not same(stated, value if value is None else float(value)):
                violations.append(f"{REPORT_FIGURES}: {' '.join(key)} {figure} is {stated}, computed is {value}")
    for key in archived:
        if key[3] != "revisions" and (key[0] != "risk" or key[4] in OF_RISK):
            violations.append(f"{REPORT_FIGURES}: {' '.join(key)} follows from no other table")


def report_rows(tables: Tables) -> Iterator[tuple[tuple[str, ...], Row]]:
    """The report, arm, forecaster and part of figures, and the figures by name."""
    records, families = QuestionRecords(tables), tables.by("families", "slug")
    models = {slug for slug, row in families.items() if not row["external"]}
    for arm in {batch["arm"] for batch in tables.by("question_batches").values()}:
        by_part, answered = defaultdict(list), []
        for item in answered_entries(tables, records, arm):
            answered.append(item.only(models))
            for part in parts_by_time(tables, item):
                by_part[part].append(answered[-1])
        for part, entries in by_part.items():
            for name, row in board_means(records, families, entries).items():
                yield ("time", arm, name, part), {figure: row[figure] for figure in OF_TIME}
        for name, row in cost_figures(tables, records, answered).items():
            yield ("costs", arm, name, ""), row
    for family, row in risk_by_family(tables).items():
        yield ("risk", "", family, ""), row


def parts_by_time(tables: Tables, item: AnsweredEntry) -> list[str]:
    """The bin of the days from an entry's freeze to the close of its market, and whether it is early."""
    if not item.question["closed_at"]:
        return []
    frozen_at = datetime.fromisoformat(tables.by("question_sets")[item.entry["question_set"]]["frozen_at"])
    days = (datetime.fromisoformat(item.question["closed_at"]) - frozen_at).total_seconds() / SECONDS_A_DAY
    return [str(start) for start, end in pairwise(DAYS_AHEAD) if start <= days < end] + ["early"] * (days >= EARLY_DAYS)


def board_means(records: QuestionRecords, families: dict[str, Row], answered: list[AnsweredEntry]) -> dict[str, Row]:
    """The means of forecasters, references among them, with their adjusted scores and the score that ranks them."""
    scored, board = scored_forecasts(records, families, answered), {}
    adjusted, ranked_by = adjusted_ranking(scored, [name for name in scored if name in families])
    for name, rows in scored.items():
        board[name] = forecaster_figures(rows, set()) | {"adjusted_brier": adjusted.get(name)}
        board[name]["score"] = board[name][ranked_by]
    return board


def cost_figures(tables: Tables, records: QuestionRecords, answered: list[AnsweredEntry]) -> dict[str, Row]:
    """The scores of the forecasts whose cost the gateway stated, and what an answer to a question took."""
    usage, entries, rows = answer_usage(tables), [], {}
    usage_by_question: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for item in answered:
        stated = {name for name in item.vectors if (item.batch, item.releases[name]) in usage}
        for name in stated:
            usage_by_question[name][item.question["id"]].append(usage[item.batch, item.releases[name]])
        entries.append(item.only(stated))
    board = board_means(records, tables.by("families", "slug"), entries)
    for name, by_question in usage_by_question.items():
        rows[name] = {figure: board[name][figure] for figure in OF_COSTS}
        for place, column in enumerate(USAGE):
            rows[name][column] = fmean(fmean(answer[place] for answer in answers) for answers in by_question.values())
        rows[name]["seconds"] = rows[name].pop("latency_ms") / 1000
    return rows | {"market": {"score": board["market"]["brier"]}} if rows and "market" in board else rows


def answer_usage(tables: Tables) -> dict[tuple[int, int], list[float]]:
    """Cost, time and tokens of an answer by batch and release, where the gateway stated each billed cost."""
    tasks = {pk: (task["batch"], task["release"]) for pk, task in tables.by("elicitations").items()}
    sums: dict[tuple[int, int], list[Any]] = {}
    usage = {}
    for call in tables.rows("calls"):
        if call["elicitation"] is not None:
            task, is_stated = tasks[call["elicitation"]], call["cost_source"] == "stated"
            values = (is_stated, 0 if is_stated else call["cost_usd"], *(call[column] or 0 for column in USAGE))
            sums[task] = list(map(sum, zip(values, sums.get(task, [0] * len(values)), strict=True)))
    answers = Counter(tasks[row["elicitation"]] for row in tables.by("forecasts").values())
    for task, (stated, unstated_cost, *totals) in sums.items():
        if stated and answers[task] and not unstated_cost:
            usage[task] = [float(total) / answers[task] for total in totals]
    return usage


def risk_by_family(tables: Tables) -> dict[str, Row]:
    """The worst drawdown, volatility and Sharpe ratio of each family by its returns in cohorts that are not voided."""
    players, by_week, families = defaultdict(list), weekly_returns(tables), {}
    for agent in tables.by("agents").values():
        if not tables.by("cohorts", "number")[agent["cohort"]]["voided_at"]:
            players[agent["family"]].append(agent)
    for family, agents in players.items():
        cohorts = [result["weeks"] for result in cohort_results(agents, by_week).values()]
        weeks = sorted(set().union(*cohorts))
        means = [fmean(returns[week] for returns in cohorts if week in returns) for week in weeks]
        spread = stdev(means) if len(means) > 1 else None
        figures = len(weeks), max(map(worst_drawdown, cohorts)), spread, fmean(means) / spread if spread else None
        families[family] = dict(zip(OF_RISK, figures, strict=True))
    return families


def worst_drawdown(returns: Mapping[Any, float]) -> float:
    """The largest fall of a portfolio from the highest value before, in per cent of that, by its values on Sundays."""
    values = list(accumulate((returns[week] for week in sorted(returns)), initial=FULL))
    return max(FULL * (high - value) / high for value, high in zip(values, accumulate(values, max), strict=True))
