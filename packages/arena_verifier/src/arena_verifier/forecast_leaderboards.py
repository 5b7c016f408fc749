"""The leaderboards of the forecast protocol: weighted means of scores, and ranks."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from arena_verifier.rows import Row, Tables, Violations, mismatches
from arena_verifier.scores import TIE, QuestionRecords, Scores

EXTREMISING, EQUAL_COVERAGE = 1.5, 0.95
REFERENCES = ("market", "uniform", "ensemble", "ensemble_median", "ensemble_extremised")


def check_forecast_leaderboards(tables: Tables, violations: Violations) -> None:
    """Weighted means of scores, and ranks by the Brier score or the adjusted one, by arm, methodology and category."""
    records, versions = QuestionRecords(tables), tables.by("question_sets")
    boards: dict[Any, dict[str, Row]] = defaultdict(dict)
    for row in tables.rows("leaderboard_forecast"):
        boards[row["arm"], row["methodology"], row["category"]][row["forecaster"]] = row
    arms_with_board = {arm for arm, *_ in boards}
    for arm in sorted(asked_arms(tables) - arms_with_board):
        violations.append(f"leaderboard_forecast: the leaderboard of arm {arm} is missing")
    for (arm, version, category), board in boards.items():
        on_board = []
        for item in answered_entries(tables, records, arm):
            in_version = version in ("", versions[item.entry["question_set"]]["methodology"])
            if in_version and category in ("", item.question["category"]):
                on_board.append(item)
        name = f"{arm} {version or 'all'} {category}"
        check_leaderboard(name, board, on_board, records, tables, violations)


def asked_arms(tables: Tables) -> set[str]:
    return {batch["arm"] for batch in tables.by("question_batches").values()}


def check_leaderboard(
    name: str,
    board: dict[str, Row],
    on_board: list["AnsweredEntry"],
    records: QuestionRecords,
    tables: Tables,
    violations: Violations,
) -> None:
    """The rows of one board follow from the entries on it, and no forecaster of these is missing."""
    families = tables.by("families", "slug")
    scored = scored_forecasts(records, families, on_board)
    questions = {item.question["id"] for item in on_board}
    models = [slug for slug in board if slug in families and not families[slug]["external"]]
    adjusted, ranked_by = adjusted_ranking(scored, models)
    figures = {forecaster: forecaster_figures(scored[forecaster], questions) for forecaster in board}
    for forecaster, row in figures.items():
        row["adjusted_brier"] = adjusted.get(forecaster)
    scores_of_models = [figures[slug][ranked_by] for slug in models if figures[slug][ranked_by] is not None]
    for forecaster, row in figures.items():
        is_external = forecaster in families and families[forecaster]["external"]
        bound = math.inf if row[ranked_by] is None else row[ranked_by] - TIE
        rank = 1 + sum(score < bound for score in scores_of_models)
        row |= {"rank": rank, "external": is_external, "ranked_by": ranked_by, "reference": forecaster not in families}
        if is_external:
            row["rank"] = None
            del row["adjusted_brier"]
        violations.extend(mismatches(f"leaderboard_forecast: {name}, {forecaster}", board[forecaster], row))
    for forecaster in scored.keys() - board.keys():
        violations.append(f"leaderboard_forecast: {forecaster} is missing in {name}")


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


class EntryScores(NamedTuple):
    """The scores of a forecast of a question on one day, and the market's Brier score there."""

    question: int
    entry: int
    scores: Scores
    market_brier: float | None


def scored_forecasts(
    records: QuestionRecords, families: Row, answered: list[AnsweredEntry]
) -> dict[str, list[EntryScores]]:
    """The scored forecasts by forecaster, references included."""
    scored: dict[str, list[EntryScores]] = defaultdict(list)
    for item in answered:
        models = [vector for slug, vector in item.vectors.items() if not families[slug]["external"]]
        size = len(records.options[item.question["id"]])
        references = reference_vectors(models, item.market, item.question["exclusive"], size)
        market_brier = None if item.market is None else records.score(item.market, item.entry).brier
        for name, vector in (item.vectors | references).items():
            scores = records.score(vector, item.entry)
            scored[name].append(EntryScores(item.question["id"], item.entry["id"], scores, market_brier))
    return scored


def adjusted_ranking(scored: dict[str, list[EntryScores]], models: list[str]) -> tuple[dict[str, float], str]:
    """The adjusted scores, and which score ranks: the adjusted one where the models answered different questions."""
    adjusted = adjusted_scores(scored, models)
    shares = [len(scored[name]) for name in models if scored[name]]
    differs = bool(shares) and min(shares) < EQUAL_COVERAGE * max(shares)
    return adjusted, "adjusted_brier" if differs and not adjusted.keys().isdisjoint(models) else "brier"


def forecasts_by_entry(tables: Tables) -> dict[Any, list[Row]]:
    """The forecasts that count by entry and arm; of one family the newest release's last."""
    newest = {pk: (row["effective_from"], pk) for pk, row in tables.by("releases").items()}
    by_entry: dict[Any, list[Row]] = defaultdict(list)
    entries = tables.by("question_entries")
    for row in sorted(tables.by("forecasts").values(), key=lambda row: (newest[row["release"]], row["id"])):
        if not row.get("excluded") and tables.counts_in(row["arm"], entries[row["entry"]]):
            by_entry[row["entry"], row["arm"]].append(row)
    return by_entry


def reference_vectors(
    vectors: list[list[float]], market: list[float] | None, exclusive: bool, size: int
) -> dict[str, list[float]]:
    """The vectors of the reference forecasters: uniform, market, and ensembles of the families' vectors."""
    references = {"uniform": [1 / size if exclusive else 0.5] * size}
    if market is not None:
        references["market"] = market
    if not vectors:
        return references
    means, medians, extremes = [], [], []
    for probabilities in zip(*vectors, strict=True):
        p = fmean(probabilities)
        means.append(p)
        medians.append(median(probabilities))
        extremes.append(p**EXTREMISING / (p**EXTREMISING + (1 - p) ** EXTREMISING))
    if exclusive:
        medians = normalised(medians) if math.fsum(medians) > 0 else means
        extremes = normalised(extremes)
    return references | {"ensemble": means, "ensemble_median": medians, "ensemble_extremised": extremes}


def normalised(vector: list[float]) -> list[float]:
    total = math.fsum(vector)
    return [p / total for p in vector]


def forecaster_figures(scored: list[EntryScores], questions: set[int]) -> Row:
    """Means of a forecaster's scores: each question counts once, however many days it was asked on."""
    times_asked = Counter(forecast.question for forecast in scored)
    coverage = len(times_asked) / max(len(questions), 1)
    means = {}
    for name in Scores._fields:
        means[name] = question_mean(times_asked, ((row.question, getattr(row.scores, name)) for row in scored))
    alphas = []
    for forecast in scored:
        if forecast.market_brier is not None:
            alphas.append((forecast.question, forecast.market_brier - forecast.scores.brier))
    means["alpha"] = question_mean(times_asked, alphas)
    return {"n": len(times_asked), "forecasts": len(scored), "coverage": coverage, **means}


def question_mean(times_asked: Mapping[int, int], values: Iterable[tuple[int, float]]) -> float | None:
    """The mean of values by question, each of which weighs one by the times that its question was asked."""
    weights, products = [], []
    for question, value in values:
        weights.append(1 / times_asked[question])
        products.append(value / times_asked[question])
    return math.fsum(products) / math.fsum(weights) if weights else None


def adjusted_scores(scored: dict[str, list[EntryScores]], models: list[str]) -> dict[str, float]:
    """Brier scores adjusted for the questions answered, of the models from their own fit, of references beside them."""
    alone = two_way_fit({name: scored[name] for name in models if scored[name]})
    joint_names = {*models, *REFERENCES}
    joint = two_way_fit({name: rows for name, rows in scored.items() if rows and name in joint_names})
    shifts = [alone[name] - joint[name] for name in alone if name in joint]
    if not shifts:
        return alone
    shift = fmean(shifts)
    return alone | {name: value + shift for name, value in joint.items() if name not in models}


class WeightedScore(NamedTuple):
    """A forecaster's Brier score on an entry, and its weight: one by its number of forecasts of the question."""

    weight: float
    brier: float


Cells = dict[int, dict[str, WeightedScore]]
"""The scores of each entry, by forecaster."""


def two_way_fit(scored: dict[str, list[EntryScores]]) -> dict[str, float]:
    """Each forecaster's effect plus the mean question effect, by weighted least squares of score = effect + effect.

    Questions are entries. Only forecasters linked by common entries to most others have a value.
    """
    cells: Cells = defaultdict(dict)
    for name, forecasts in scored.items():
        times_asked = Counter(forecast.question for forecast in forecasts)
        for forecast in forecasts:
            weight = 1 / times_asked[forecast.question]
            cells[forecast.entry][name] = WeightedScore(weight, forecast.scores.brier)
    names = linked_forecasters(cells)
    cells = {entry: answers for entry, answers in cells.items() if answers.keys() <= names}
    if not cells:
        return {}
    effects = forecaster_effects(sorted(names), cells)
    level, total = [], []
    for answers in cells.values():
        mass = math.fsum(cell.weight for cell in answers.values())
        residuals = [cell.weight * (cell.brier - effects[name]) for name, cell in answers.items()]
        level.append(math.fsum(residuals) / len(answers))
        total.append(mass / len(answers))
    question_effect = math.fsum(level) / math.fsum(total)
    return {name: effect + question_effect for name, effect in effects.items()}


def forecaster_effects(names: list[str], cells: Cells) -> dict[str, float]:
    """The forecasters' effects: the entries' are eliminated from the normal equations, and those of all sum to 0."""
    size, place_of = len(names), {name: place for place, name in enumerate(names)}
    matrix = [[1 / size] * size for _ in names]  # the constant vector, which the equations leave open, has a mean of 0
    right = [0.0] * size
    for answers in cells.values():
        mass = math.fsum(cell.weight for cell in answers.values())
        mean = math.fsum(cell.weight * cell.brier for cell in answers.values()) / mass
        for name, cell in answers.items():
            i = place_of[name]
            right[i] += cell.weight * (cell.brier - mean)
            matrix[i][i] += cell.weight
            for rival, beside in answers.items():
                matrix[i][place_of[rival]] -= cell.weight * beside.weight / mass
    return dict(zip(names, solve(matrix, right), strict=True))


def linked_forecasters(cells: Cells) -> set[str]:
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
