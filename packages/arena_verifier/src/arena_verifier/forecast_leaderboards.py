"""The leaderboards of the forecast protocol: weighted means of scores, and ranks."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection
from statistics import fmean, median
from typing import Any, NamedTuple

from arena_verifier.rows import Row, Tables, Violations, mismatches
from arena_verifier.scores import TIE, QuestionRecords

EXTREMISING, EQUAL_COVERAGE = 1.5, 0.95
REFERENCES = ("market", "uniform", "ensemble", "ensemble_median", "ensemble_extremised")


def check_forecast_leaderboards(tables: Tables, violations: Violations) -> None:
    """Weighted means of scores, and ranks by the Brier score or the adjusted one, by arm, methodology and category."""
    records, families = QuestionRecords(tables), tables.by("families", "slug")
    boards: dict[Any, dict[str, Row]] = defaultdict(dict)
    batches = tables.by("question_batches").values()
    for row in tables.rows("leaderboard_forecast"):
        boards[row["arm"], row["methodology"], row["category"]][row["forecaster"]] = row
    for arm in {batch["arm"] for batch in batches} - {arm for arm, *_ in boards}:
        violations.append(f"leaderboard_forecast: the leaderboard of arm {arm} is missing")
    for (arm, version, category), board in boards.items():
        on_board, versions = [], tables.by("question_sets")
        for item in answered_entries(tables, records, arm):
            in_version = version in ("", versions[item.entry["question_set"]]["methodology"])
            if in_version and category in ("", item.question["category"]):
                on_board.append(item)
        questions = {item.question["id"] for item in on_board}
        scored = scored_forecasts(records, families, on_board)
        models = [name for name in board if name in families and not families[name]["external"]]
        means = {name: forecaster_figures(scored[name], questions) for name in board}
        adjusted, ranked_by = adjusted_ranking(scored, models)
        ranking = adjusted if ranked_by == "adjusted_brier" else {name: means[name]["brier"] for name in board}
        model_scores = [ranking[name] for name in models if ranking.get(name) is not None]
        for name, row in board.items():
            score, external = ranking.get(name), name in families and families[name]["external"]
            bound = math.inf if score is None else score - TIE
            rank = 1 + sum(model_score < bound for model_score in model_scores)
            figures = means[name] | {"rank": None if external else rank, "external": external, "ranked_by": ranked_by}
            if not external:
                figures["adjusted_brier"] = adjusted.get(name)
            figures["reference"] = name not in families
            violations.extend(
                mismatches(f"leaderboard_forecast: {arm} {version or 'all'} {category}, {name}", row, figures)
            )
        for name in scored.keys() - board.keys():
            violations.append(f"leaderboard_forecast: {name} is missing in {arm} {version or 'all'} {category}")


class AnsweredEntry(NamedTuple):
    """A resolved question on a day it was asked, the market's probabilities, and those and the releases of families."""

    batch: int
    entry: Row
    question: Row
    market: list[float] | None
    vectors: dict[str, list[float]]
    releases: dict[str, int]

    def only(self, slugs: Collection[str]) -> "AnsweredEntry":
        """The entry with the probabilities of these families alone."""
        return self._replace(vectors={slug: vector for slug, vector in self.vectors.items() if slug in slugs})


def answered_entries(tables: Tables, records: QuestionRecords, arm: str) -> list[AnsweredEntry]:
    """The entries of resolved questions that count in an arm."""
    if ("answered", arm) in tables.cache:
        return list(tables.cache["answered", arm])
    rows, by_entry = tables.by("question_batches").values(), forecasts_by_entry(tables)
    batches = {(row["question_set"], row["number"]): row["id"] for row in rows if row["arm"] == arm}
    answered = tables.cache["answered", arm] = []
    for pk, entry in records.entries.items():
        batch, question = batches.get((entry["question_set"], entry["batch"])), records.questions[entry["question"]]
        if batch is not None and question["status"] == "resolved" and tables.counts_in(arm, entry):
            vectors = {row["family"]: records.vector(row, question) for row in by_entry[pk, arm]}
            releases = {row["family"]: row["release"] for row in by_entry[pk, arm]}
            answered.append(AnsweredEntry(batch, entry, question, records.market(entry), vectors, releases))
    return answered


def scored_forecasts(records: QuestionRecords, families: Row, answered: list[AnsweredEntry]) -> dict[str, list[Any]]:
    """By forecaster, references included, the question, scores, the market's Brier score and the entry of each."""
    scored: dict[str, list[Any]] = defaultdict(list)
    for _, entry, question, market, vectors, _ in answered:
        models = [vector for slug, vector in vectors.items() if not families[slug]["external"]]
        references = reference_vectors(models, market, question["exclusive"], len(records.options[question["id"]]))
        market_score = None if market is None else records.score(market, entry)[0]
        for name, vector in (vectors | references).items():
            scored[name].append((question["id"], records.score(vector, entry), market_score, entry["id"]))
    return scored


def adjusted_ranking(scored: dict[str, list[Any]], models: list[str]) -> tuple[dict[str, float], str]:
    """The adjusted scores, and which score ranks: the adjusted one where the models answered different questions."""
    adjusted = adjusted_scores(scored, models)
    shares = [len(scored[name]) for name in models if scored[name]]
    differs = bool(shares) and min(shares) < EQUAL_COVERAGE * max(shares)
    return adjusted, "adjusted_brier" if differs and any(name in adjusted for name in models) else "brier"


def forecasts_by_entry(tables: Tables) -> dict[Any, list[Row]]:
    """The forecasts that count by entry and arm; of one family the newest release's last."""
    newest = {pk: (row["effective_from"], pk) for pk, row in tables.by("releases").items()}
    by_entry: dict[Any, list[Row]] = defaultdict(list)
    for row in sorted(tables.by("forecasts").values(), key=lambda row: (newest[row["release"]], row["id"])):
        if not row.get("excluded"):
            by_entry[row["entry"], row["arm"]].append(row)
    return by_entry


def reference_vectors(
    vectors: list[list[float]], market: list[float] | None, exclusive: bool, size: int
) -> dict[str, list[float]]:
    """The vectors of the reference forecasters: uniform, market, and ensembles of the families' vectors."""
    references = {"uniform": [1 / size if exclusive else 0.5] * size}
    if market is not None:
        references["market"] = market
    if vectors:
        columns = list(zip(*vectors, strict=True))
        mean, middle = [fmean(column) for column in columns], [median(column) for column in columns]
        sure = [p**EXTREMISING / (p**EXTREMISING + (1 - p) ** EXTREMISING) for p in mean]
        if exclusive:
            middle = [p / math.fsum(middle) for p in middle] if math.fsum(middle) > 0 else mean
            sure = [p / math.fsum(sure) for p in sure]
        references |= {"ensemble": mean, "ensemble_median": middle, "ensemble_extremised": sure}
    return references


def forecaster_figures(scored: list[Any], questions: set[int]) -> Row:
    """Means of a forecaster's scores: each question counts once, however many days it was asked on."""
    times_asked = Counter(question for question, *_ in scored)
    coverage = len(times_asked) / max(len(questions), 1)
    figures: Row = {"n": len(times_asked), "forecasts": len(scored), "coverage": coverage}

    def mean(values: list[Any]) -> float | None:
        weights, products = [], []
        for (question, *_), value in zip(scored, values, strict=True):
            if value is not None:
                weights.append(1 / times_asked[question])
                products.append(value / times_asked[question])
        return math.fsum(products) / math.fsum(weights) if weights else None

    for place, name in enumerate(("brier", "log", "spherical", "accuracy")):
        figures[name] = mean([scores[place] for _, scores, *_ in scored])
    alphas = []
    for _, scores, *prices in scored:
        market = prices[0]
        alphas.append(None if market is None else market - scores[0])
    figures["alpha"] = mean(alphas)
    return figures


def adjusted_scores(scored: dict[str, list[Any]], models: list[str]) -> dict[str, float]:
    """Brier scores adjusted for the questions answered, of the models from their own fit, of references beside them."""
    alone = two_way_fit({name: scored[name] for name in models if scored[name]})
    rows_by_name = {name: scored[name] for name in scored if scored[name] and name in {*models, *REFERENCES}}
    joint = two_way_fit(rows_by_name)
    shifts = [alone[name] - joint[name] for name in alone if name in joint]
    if not shifts:
        return alone
    shift = fmean(shifts)
    return alone | {name: value + shift for name, value in joint.items() if name not in models}


def two_way_fit(scored: dict[str, list[Any]]) -> dict[str, float]:
    """Each forecaster's effect plus the mean question effect, by weighted least squares of score = effect + effect.

    Questions are entries; each of a forecaster's k forecasts of a question weighs 1/k. Only forecasters linked by
    common entries to most others have a value.
    """
    cells: dict[int, dict[str, tuple[float, float]]] = {}
    for name, rows in scored.items():
        times_asked = Counter(question for question, *_ in rows)
        for question, scores, *origin in rows:
            cells.setdefault(origin[-1], {})[name] = (1 / times_asked[question], scores[0])
    names = linked_forecasters(cells)
    cells = {entry: answers for entry, answers in cells.items() if answers.keys() <= names}
    if not cells:
        return {}
    order = {name: place for place, name in enumerate(sorted(names))}
    size = len(order)
    # The entries are eliminated; the constant vector, which the equations leave open, is fixed at a mean of 0.
    matrix, right = [[1 / size] * size for _ in order], [0.0] * size
    for answers in cells.values():
        mass = math.fsum(weight for weight, _ in answers.values())
        mean = math.fsum(weight * score for weight, score in answers.values()) / mass
        for name, (weight, score) in answers.items():
            i = order[name]
            right[i] += weight * (score - mean)
            matrix[i][i] += weight
            for rival, (beside, _) in answers.items():
                matrix[i][order[rival]] -= weight * beside / mass
    effects = solve(matrix, right)
    level, total = [], []
    for answers in cells.values():
        mass = math.fsum(weight for weight, _ in answers.values())
        residuals = [weight * (score - effects[order[name]]) for name, (weight, score) in answers.items()]
        beta = math.fsum(residuals) / mass
        level.append(mass / len(answers) * beta)
        total.append(mass / len(answers))
    return {name: effects[i] + math.fsum(level) / math.fsum(total) for name, i in order.items()}


def linked_forecasters(cells: dict[int, dict[str, tuple[float, float]]]) -> set[str]:
    """The largest set of forecasters linked by common entries: by its forecasters, then its forecasts."""
    groups: list[tuple[set[str], int]] = []
    for answers in cells.values():
        joined, apart = (set(answers), len(answers)), []
        for group in groups:
            if group[0] & joined[0]:
                joined = group[0] | joined[0], group[1] + joined[1]
            else:
                apart.append(group)
        groups = [*apart, joined]
    return max(groups, key=lambda group: (len(group[0]), group[1]), default=(set(), 0))[0]


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a system of linear equations by elimination with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(size):
            if i != column and rows[i][column]:
                factor = rows[i][column] / rows[column][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]
