"""The forecast leaderboard over some entries: figures of families and references, ranks, tests and slow fits."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from forecast_rank import Settings, mean_tests, rank_panel, to_json_value
from forecast_rank.metrics.agreement import agreement
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.skill import alpha
from forecast_rank.metrics.uncertainty import event_sums
from foundation.bulk import subset
from foundation.heartbeats import beat
from scoring.constants import ENSEMBLE, EXTREMISING, GAMMAS, RANKED_BY, REFERENCES
from scoring.leaderboard_keys import model_entries, ranking_score
from scoring.selectors.claims import bears_claim, questions_more
from scoring.selectors.forecast_panels import Panels, ResolvedEntry, last_forecasts, panels
from scoring.services.trading_leaderboards import LeaderboardContents

AVERAGED = ("brier", "log", "spherical", "average_return", "alpha", "calibration", "adjusted_brier")
FITTED = ("bradley_terry",)
SLOWLY_FITTED = ("irt", "weighted_brier")
"""Metrics that take seconds to fit; copied from the stored leaderboard unless it is to be fitted again."""
SLOW_FIGURES = ("irt_ability", "irt_se", "irt_ability_ci", "weighted_brier", "weighted_brier_ci")
"""The figures of an entry that the slow fits give."""
SLOW_NOTE = "item response theory"
"""How the notes of a report begin that the slow fits give."""
ROUNDING = 1e-12
"""Adjusted scores are solutions of equations: equal ones differ by as much."""
CURVE_POINTS = 120
FIGURES = (
    "coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "average_return",
    "average_return_ci", "log_wealth", "ruins", "alpha", "alpha_se", "alpha_ci", "bss_uniform", "bss_market", "ece",
    "ece_noise_floor", "weighted_brier", "adjusted_brier", "adjusted_brier_se", "adjusted_brier_ci",
    "weighted_brier_ci", "irt_ability", "irt_se", "irt_ability_ci", "bt_ability", "bt_se", "bt_ability_ci",
    "pool_weight",
)  # fmt: skip
"""Figures that an entry copies from a report; null where they were not computed."""
REFERENCE_NAMES = {name: name.replace("_", " ").capitalize() for name in REFERENCES}
LOWER_IS_BETTER = frozenset({"brier", "ece", "weighted_brier", "adjusted_brier"})
RANKING = (
    "brier", "log", "spherical", "accuracy", "alpha", "ece", "weighted_brier", "adjusted_brier", "irt_ability",
    "bt_ability",
)  # fmt: skip
"""The figures that rank forecasters, besides the averaged returns."""


def forecast_leaderboard(
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
    *,
    metrics: tuple[str, ...] = AVERAGED,
    reported: bool = True,
) -> LeaderboardContents:
    """The leaderboard over these entries, by the adjusted Brier score where the library heads its report by it.

    Families without an answer have nulls and stand last. `families` and `externals` are display names by slug. A
    reference's rank is the place that it would take among the families; an external agent has none. The report is
    empty unless `reported`.
    """
    built = panels(resolved, families, externals)
    step = max(1, math.ceil(len(resolved) / CURVE_POINTS))
    report = _rank(built, Settings(metrics, GAMMAS, stream=step))
    figures_by_name = report["forecasters"] | report["references"] | report["externals"]
    questions: dict[str, int] = {}
    for panel in built:
        questions |= questions_answered(panel)
    resolved_questions = len({entry.question for entry in resolved})
    ranked_by = report["headline"] if report["headline"] in RANKED_BY else "brier"
    names = {**families, **externals, **REFERENCE_NAMES}
    entries = []
    for name, figures in figures_by_name.items():
        rank_low, rank_high = figures.get("rank_ranges", {}).get(ranked_by) or (None, None)
        entry = {
            "forecaster": name,
            "family": None if name in REFERENCES else name,
            "display_name": names[name],
            "reference": name in REFERENCES,
            "external": name in externals,
            "rank": None,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "ranked_by": ranked_by,
            "n": questions[name],
            "forecasts": figures["n"],
        }
        entry |= {key: figures.get(key) for key in FIGURES}
        entry["coverage"] = questions[name] / max(resolved_questions, 1)
        entries.append(entry)
    if not reported:
        return LeaderboardContents(rank_entries(entries), {})
    parts = {"agreement": rank_agreement(entries), "market": market_tests(built.families)}
    if ensemble := market_tests(built.references).get(ENSEMBLE):
        parts["ensemble"] = ensemble | {"p_holm": ensemble["p"]}  # one comparison, whatever other references there are
    return LeaderboardContents(rank_entries(entries), _report(report, resolved) | parts)


def market_tests(panel: Panel) -> dict[str, dict[str, Any]]:
    """The test of each forecaster and the market's prices on the same questions, clustered by event.

    By name: `difference` (alpha), `se`, `freedom`, `p`, `p_holm`, corrected for the number of forecasters, `margin`,
    half the interval that leaves out 0 where the corrected p is below 5 %, and the `questions` and `events` behind it;
    null where the difference is the same on all events.
    """
    sums = event_sums(panel, alpha(panel))
    tests = mean_tests(sums)
    columns = {
        "difference": tests.mean, "se": tests.se, "freedom": tests.freedom, "p": tests.p, "p_holm": tests.p_holm,
        "margin": tests.margin,
    }  # fmt: skip
    found = {}
    for place, name in enumerate(panel.forecasters):
        found[name] = {key: to_json_value(values[place]) for key, values in columns.items()}
        # Each of k forecasts of a question weighs 1/k.
        found[name] |= {"questions": round(float(tests.weight[place])), "events": int(sums.events[place])}
    return found


def tests_by_question(pairs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The paired tests with `n` in questions, not in days of them, and the questions that each still needs.

    A test that bears no claim has no margin.
    """
    tested = sum(pair["p"] is not None for pair in pairs)
    counted = []
    for pair in pairs:
        more = questions_more(pair["weight"], pair["se"] or math.nan, claims=max(tested, 1))
        needed = None if more is None else more + round(pair["weight"])
        margin = pair["margin"] if bears_claim(pair) else None
        counts = {"n": round(pair["weight"]), "questions_needed": needed, "questions_more": more}
        counted.append({**pair, **counts, "margin": margin})
    return counted


class SlowFits(NamedTuple):
    """The figures of each forecaster that the slow fits give, and what they say of the models and the questions."""

    figures: dict[str, dict[str, Any]]
    models: dict[str, Any]
    notes: list[str]
    questions: dict[str, dict[str, Any]]


def slow_fits(resolved: Sequence[ResolvedEntry], families: Mapping[str, str], externals: Mapping[str, str]) -> SlowFits:
    """The slow fits to these entries: a question is one item, whatever the days it was asked on, with the last
    forecast of each."""
    report = _rank(panels(last_forecasts(resolved), families, externals), Settings(SLOWLY_FITTED, GAMMAS))
    figures_by_name = report["forecasters"] | report["references"] | report["externals"]
    slow_figures = {}
    for name, figures in figures_by_name.items():
        slow_figures[name] = {key: figures.get(key) for key in SLOW_FIGURES}
    return SlowFits(slow_figures, report["models"], report["notes"], report["questions"])


def _rank(built: Panels, settings: Settings) -> dict[str, Any]:
    """The report of the library on families and references, with the figures of `externals`."""
    families, references, externals = built
    beat()  # a fit of many forecasts takes seconds without a query
    rank = partial(rank_panel, families, settings, agreement_of_rankings=False)
    # Externals apart from the others: no figure of a family or a reference depends on them.
    apart = rank(reference_panel=externals)["references"] if externals.forecasters else {}
    return rank(reference_panel=references) | {"externals": apart}


def _report(report: Mapping[str, Any], resolved: Sequence[ResolvedEntry]) -> dict[str, Any]:
    """The results besides the ranking."""
    murphy = {}
    for name, figures in (report["forecasters"] | report["references"]).items():
        if figures.get("murphy"):
            murphy[name] = figures["murphy"]
    return {
        "murphy": murphy,
        "pairs": tests_by_question(report["pairs"]),
        **subset(report, ("curves", "rankings", "models", "notes")),
        "data": report["data"] | {"questions": len({e.question for e in resolved}), "entries": len(resolved)},
        "extremising": EXTREMISING,
    }


def questions_answered(panel: Panel) -> dict[str, int]:
    """The number of questions that each forecaster answered, one of several days counted once."""
    # Each of k forecasts of a question weighs 1/k.
    numbers = np.bincount(panel.forecaster, panel.weight, len(panel.forecasters))
    return dict(zip(panel.forecasters, np.rint(numbers).astype(int).tolist(), strict=True))


def rank_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries by rank, each with its rank set; external agents, which have none, come last."""
    scores = []
    for entry in model_entries(entries):
        if (score := ranking_score(entry)) is not None:
            scores.append(score)
    scores.sort()
    for entry in entries:
        score = ranking_score(entry)
        if not entry["external"]:
            entry["rank"] = 1 + bisect_left(scores, math.inf if score is None else score - ROUNDING)

    def order(entry: dict[str, Any]) -> tuple[Any, ...]:
        score = ranking_score(entry)
        return entry["external"], score is None, score or 0, entry["reference"], entry["forecaster"]

    return sorted(entries, key=order)


def rank_agreement(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Rank correlations between the ranking figures of the families, as tables of name by name."""
    positions: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in model_entries(entries):
        for name, value in _ranking_figures(entry):
            positions[name][entry["forecaster"]] = math.nan if value is None else value
    for name, column in list(positions.items()):
        if all(map(math.isnan, column.values())):
            del positions[name]
    tables = agreement(positions)
    correlations: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in ("spearman", "kendall", "common"):
        correlations[measure] = {}
        for name, row in zip(tables.names, getattr(tables, measure), strict=True):
            correlations[measure][name] = dict(zip(tables.names, map(to_json_value, row), strict=True))
    return correlations


def _ranking_figures(entry: Mapping[str, Any]) -> Iterable[tuple[str, float | None]]:
    """The ranking figures, each with the sign by which less is better."""
    for name in RANKING:
        value = entry[name]
        yield name, value if value is None or name in LOWER_IS_BETTER else -value
    for gamma in GAMMAS:
        value = (entry["average_return"] or {}).get(gamma)
        yield f"average_return:{gamma}", None if value is None else -value
