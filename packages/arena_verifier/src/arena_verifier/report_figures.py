"""The figures of the reports on time, costs, releases and risk: means of scores, of costs, and of returns."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

from arena_verifier.forecast_leaderboards import (
    AnsweredEntry,
    adjusted_ranking,
    answered_entries,
    asked_arms,
    forecaster_figures,
    scored_forecasts,
)
from arena_verifier.rows import Row, Tables, Violations, same
from arena_verifier.scores import QuestionRecords
from arena_verifier.trading_risk import risk_by_family

REPORT_FIGURES = "report_figures"
DAYS_AHEAD, EARLY_DAYS, SECONDS_A_DAY = (0, 1, 3, 7, 14, 30, math.inf), 14, 86_400
TREND_DAYS = 365
"""Forecasts made later than this after a release's first are not in its scores."""
OF_TIME, OF_COSTS = ("n", "brier", "alpha", "adjusted_brier"), ("n", "score")
USAGE = ("cost_usd", "search_cost_usd", "latency_ms", "tokens_input", "tokens_output")
TRENDS = ("released_on", "knowledge_cutoff")
CHANCES = ("first_share", "odds_bettor_share", "luckiest_bettor_share")
NO_MOVE = 1e-12


def check_report_figures(tables: Tables, violations: Violations) -> None:
    """The values follow from other tables, but for consistency, trends and what resamples and simulations give."""
    archived: dict[tuple[str, ...], float] = {}
    for row in tables.rows(REPORT_FIGURES):
        is_left = row["report"] == "consistency" or row["part"] in TRENDS or row["figure"] in CHANCES
        if not is_left:
            archived[*key_of(row), row["figure"]] = row["value"]
    for key, figures in report_rows(tables):
        for figure, value in figures.items():
            archived_value = archived.pop((*key, figure), None)
            if not same(archived_value, value if value is None else float(value)):
                words = f"{' '.join(key)} {figure} is {archived_value}, computed is {value}"
                violations.append(f"{REPORT_FIGURES}: {words}")
    for names in archived:
        violations.append(f"{REPORT_FIGURES}: {' '.join(names)} follows from no other table")


def key_of(row: Row) -> tuple[str, str, str, str]:
    return row["report"], row["arm"], row["forecaster"], row["part"]


def report_rows(tables: Tables) -> Iterator[tuple[tuple[str, str, str, str], Row]]:
    """The report, arm, forecaster and part of figures, and the figures by name."""
    records, families = QuestionRecords(tables), tables.by("families", "slug")
    models = {slug for slug, row in families.items() if not row["external"]}
    for arm in asked_arms(tables):
        by_part, answered = defaultdict(list), []
        for item in answered_entries(tables, records, arm):
            answered.append(item.only(models))
            for part in parts_by_time(tables, item):
                by_part[part].append(answered[-1])
        for part, entries in by_part.items():
            for name, row in board_means(records, families, entries).items():
                yield ("time", arm, name, part), {figure: row[figure] for figure in OF_TIME}
        for name, row in revisions(tables, answered).items():
            yield ("time", arm, name, "revisions"), row
        for name, row in cost_figures(tables, records, answered).items():
            yield ("costs", arm, name, ""), row
        for release, row in release_figures(tables, records, answered).items():
            yield ("releases", arm, tables.by("releases")[release]["family"], str(release)), row
    for family, row in risk_by_family(tables).items():
        yield ("risk", "", family, ""), row


def parts_by_time(tables: Tables, item: AnsweredEntry) -> list[str]:
    """The bin of the days from an entry's freeze to the close of its market, and whether it is early."""
    if not item.question["closed_at"]:
        return []
    closed_at = datetime.fromisoformat(item.question["closed_at"])
    days = (closed_at - freeze_of(tables, item)).total_seconds() / SECONDS_A_DAY
    parts = ["early"] if days >= EARLY_DAYS else []
    for start, end in pairwise(DAYS_AHEAD):
        if start <= days < end:
            parts.append(str(start))
    return parts


def freeze_of(tables: Tables, item: AnsweredEntry) -> datetime:
    return datetime.fromisoformat(tables.by("question_sets")[item.entry["question_set"]]["frozen_at"])


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
        families = [name for name in item.vectors if (item.batch, item.releases[name]) in usage]
        for name in families:
            usage_by_question[name][item.question["id"]].append(usage[item.batch, item.releases[name]])
        entries.append(item.only(families))
    board = board_means(records, tables.by("families", "slug"), entries)
    for name, by_question in usage_by_question.items():
        rows[name] = {figure: board[name][figure] for figure in OF_COSTS}
        for place, column in enumerate(USAGE):
            means = [fmean(map(itemgetter(place), answers)) for answers in by_question.values()]
            rows[name][column] = fmean(means)
        rows[name]["seconds"] = rows[name].pop("latency_ms") / 1000
    return rows | {"market": {"score": board["market"]["brier"]}} if rows and "market" in board else rows


def answer_usage(tables: Tables) -> dict[tuple[int, int], list[float]]:
    """Cost, time and tokens of an answer by batch and release, where the gateway stated each billed cost."""
    tasks = {pk: (task["batch"], task["release"]) for pk, task in tables.by("elicitations").items()}
    sums: dict[tuple[int, int], list[Any]] = defaultdict(lambda: [0] * len(USAGE))
    with_cost, without_cost = set(), set()
    for call in tables.rows("calls"):
        if call["elicitation"] is None:
            continue
        task = tasks[call["elicitation"]]
        if call["cost_source"] == "stated":
            with_cost.add(task)
        elif call["cost_usd"]:
            without_cost.add(task)
        for place, column in enumerate(USAGE):
            sums[task][place] += call[column] or 0
    answers = Counter(tasks[row["elicitation"]] for row in tables.by("forecasts").values())
    usage = {}
    for task in with_cost - without_cost:
        if answers[task]:
            usage[task] = [float(total) / answers[task] for total in sums[task]]
    return usage


class Move(NamedTuple):
    """How far a forecast and the price moved between two days: means over options; `agrees` if they went the same way.

    `agrees` is None where one of them did not move, or neither up nor down.
    """

    revision: float
    price: float
    agrees: bool | None


def moves(forecasts: Iterable[tuple[Sequence[float], Sequence[float] | None]]) -> list[Move]:
    """The moves between consecutive forecasts of a question and the prices beside them, None where one is missing."""
    listed = []
    for (before, price_before), (after, price_after) in pairwise(forecasts):
        if price_before is None or price_after is None:
            continue
        revision = [second - first for first, second in zip(before, after, strict=True)]
        price = [second - first for first, second in zip(price_before, price_after, strict=True)]
        product = math.fsum(p * q for p, q in zip(revision, price, strict=True))
        agrees = None if abs(product) < NO_MOVE else product > 0
        listed.append(Move(fmean(map(abs, revision)), fmean(map(abs, price)), agrees))
    return listed


def revisions(tables: Tables, answered: list[AnsweredEntry]) -> dict[str, Row]:
    """The mean moves of each family: a question counts once, as the mean of its moves."""
    forecasts: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for item in sorted(answered, key=lambda item: freeze_of(tables, item)):
        for name, vector in item.vectors.items():
            forecasts[name][item.question["id"]].append((vector, item.market))
    figures = {}
    for name, by_question in forecasts.items():
        sizes, prices, directions = [], [], []
        for vectors in by_question.values():
            moves_of_question = moves(vectors)
            if moves_of_question:
                sizes.append(fmean(move.revision for move in moves_of_question))
                prices.append(fmean(move.price for move in moves_of_question))
            agreements = [move.agrees for move in moves_of_question if move.agrees is not None]
            if agreements:
                directions.append(fmean(agreements))
        if sizes:
            figures[name] = {
                "n": len(sizes), "revision": fmean(sizes), "price_move": fmean(prices),
                "difference": fmean(sizes) - fmean(prices), "same_direction": fmean(directions) if directions else None,
            }  # fmt: skip
    return figures


def release_figures(tables: Tables, records: QuestionRecords, answered: list[AnsweredEntry]) -> dict[int, Row]:
    """The scores of each release's forecasts within a year of its first, and how they differ from the market's."""
    first: dict[int, datetime] = {}
    for forecast in tables.by("forecasts").values():
        made_at = datetime.fromisoformat(forecast["made_at"])
        first[forecast["release"]] = min(made_at, first.get(forecast["release"], made_at))
    by_release: dict[int, list[AnsweredEntry]] = defaultdict(list)
    for item in answered:
        frozen_at = freeze_of(tables, item)
        for name, release in item.releases.items():
            if name in item.vectors:
                entries = by_release[release]
                if (frozen_at - first[release]).total_seconds() <= TREND_DAYS * SECONDS_A_DAY:
                    entries.append(item.only({name}))
    figures = {}
    for release, entries in by_release.items():
        name = tables.by("releases")[release]["family"]
        means = forecaster_figures(scored_forecasts(records, tables.by("families", "slug"), entries)[name], set())
        difference = None if means["alpha"] is None else -means["alpha"]
        figures[release] = {"n": means["n"], "brier": means["brier"], "difference": difference}
    return figures
