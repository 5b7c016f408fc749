"""The metrics of the forecast leaderboard: what each is for, how it is written, and where two of them disagree."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from arena_site.pages.filters import format_as, score
from foundation.bulk import mappings_by, rows_by

Entry = Mapping[str, Any]
SHOWN_DISAGREEMENTS = 5
NOTABLE_RANK_GAP = 2
ORDINALS = {1: "st", 2: "nd", 3: "rd"}
PROPER_NAMES = ("Brier", "Bradley")
"""Beginnings of metrics' names that stay capitalised in a sentence."""


class Metric(NamedTuple):
    """A metric of an entry of the leaderboard.

    key : of the entry; with a risk aversion after a colon for returns
    term : its place in the glossary
    use : what it is for, in a sentence
    difference : why it may rank models otherwise than the Brier score
    best : the best value: "low" or "high"; empty for figures that rank nobody
    """

    key: str
    name: str
    term: str
    kind: str
    best: str
    use: str
    difference: str = ""

    def value(self, entry: Entry) -> Any:
        name, _, gamma = self.key.partition(":")
        return (entry[name] or {}).get(gamma) if gamma else entry[name]

    def text(self, entry: Entry) -> str:
        return format_as(self.value(entry), self.kind)

    def place(self, entry: Entry, rank: int) -> str:
        """An entry's rank by the metric, in a sentence."""
        name = self.name if self.name.startswith(PROPER_NAMES) else self.name[0].lower() + self.name[1:]
        return f"{ordinal(rank)} by {name} ({self.text(entry)})"

    def small_print(self, entry: Entry) -> str:
        """The uncertainty beside the value; empty where there is none."""
        name, _, gamma = self.key.partition(":")
        interval = entry.get(f"{name}_ci")
        if gamma:
            interval = (interval or {}).get(gamma)
        if name == "ece":
            return f"by chance {score(entry['ece_noise_floor'])}"
        return f"{format_as(interval[0], self.kind)} to {format_as(interval[1], self.kind)}" if interval else ""


BRIER = Metric("brier", "Brier score", "brier-score", "score", "low", "It ranks the models.")
GROUPS: Mapping[str, Sequence[Metric]] = {
    "Other scores and calibration": (
        Metric("log", "Log score", "log-score", "score", "high", "It shows confident errors, which it punishes most.",
               "the log score punishes a few confident errors far more"),
        Metric("spherical", "Spherical score", "spherical-score", "score", "high",
               "It checks that the ranking does not depend on the choice of score.",
               "the spherical score weighs errors on questions with many options differently"),
        Metric("accuracy", "Top-choice accuracy", "top-choice-accuracy", "fraction", "high",
               "It shows how often the likeliest option happens, whatever its probability.",
               "accuracy ignores how sure a model was"),
        Metric("bss_market", "Share of the market’s score", "share-of-market", "signed_score", "",
               "It shows which part of the market’s error a model avoids."),
        Metric("ece", "Calibration error", "calibration-error", "score", "low",
               "It shows whether stated probabilities match observed frequencies.",
               "calibration does not reward telling likely from unlikely events, which the Brier score does"),
    ),
    "Returns at the market’s prices": (
        Metric("average_return:0", "Return", "average-return", "net_return", "high",
               "It shows whether the best bet by each forecast makes money.",
               "with all of $1 on one option the return rests on a few long shots"),
        Metric("average_return:0.5", "Return, risk aversion 0.5", "risk-aversion", "net_return", "high",
               "The same with stakes that are spread, so that luck matters less.",
               "returns count only where a forecast differs from the price"),
        Metric("average_return:1", "Return, risk aversion 1", "risk-aversion", "net_return", "high",
               "The same with stakes equal to the probabilities.",
               "returns count only where a forecast differs from the price"),
        Metric("log_wealth:1", "Log wealth", "log-wealth", "signed_score", "",
               "It shows whether cautious bets on the forecasts make wealth grow."),
    ),
    "Across different questions": (
        Metric("adjusted_brier", "Adjusted Brier", "adjusted-brier", "score", "low",
               "It compares models that answered different questions.",
               "the adjusted score removes how hard the questions were that each model answered"),
        Metric("weighted_brier", "Weighted Brier", "weighted-brier", "score", "low",
               "It gives more weight to questions that separate good from bad models.",
               "questions that separate the models count more"),
        Metric("irt_ability", "Ability (IRT)", "irt-ability", "signed_score", "high",
               "It estimates ability and the difficulty of questions together.",
               "ability weighs questions by how sharply they separate the models"),
        Metric("bt_ability", "Bradley–Terry", "bradley-terry", "signed_score", "high",
               "It rates models by direct comparisons on each question.",
               "it counts on how many questions a model is better, not by how much"),
        Metric("pool_weight", "Pool weight", "pool-weight", "fraction", "",
               "It shows what a model adds to a mixture of all."),
    ),
}  # fmt: skip
ALPHA = Metric("alpha", "Alpha", "alpha", "signed_score", "high", "It compares with the market.")
METRICS = rows_by("key", chain((BRIER, ALPHA), *GROUPS.values()))


def disagreements(entries: Sequence[Entry], agreement: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Sentences on the metrics that rank some model most otherwise than the Brier score, the least correlated first."""
    correlations = agreement.get(BRIER.key, {})
    by_brier = _ranks(BRIER, entries)
    sentences = []
    for metric in METRICS.values():
        if not metric.difference:
            continue
        ranks = _ranks(metric, entries)
        gaps = {name: abs(rank - by_brier[name]) for name, rank in ranks.items() if name in by_brier}
        name = max(gaps, key=lambda name: (gaps[name], -ranks[name]), default=None)
        if name is not None and gaps[name] >= NOTABLE_RANK_GAP:
            entry = mappings_by("forecaster", entries)[name]
            first, second = BRIER.place(entry, by_brier[name]), metric.place(entry, ranks[name])
            sentence = f"{entry['display_name']} is {first} and {second}: {metric.difference}."
            correlation = correlations.get(metric.key)
            sentences.append((1.0 if correlation is None else correlation, sentence))
    return list(map(itemgetter(1), sorted(sentences)[:SHOWN_DISAGREEMENTS]))


def ordinal(number: int) -> str:
    """A rank as a word: 1st, 2nd, 3rd, 11th."""
    return f"{number}{ORDINALS.get(number % 10, 'th') if number % 100 not in (11, 12, 13) else 'th'}"


def _ranks(metric: Metric, entries: Sequence[Entry]) -> dict[str, int]:
    """The rank of each model by a metric; baselines and external agents have none."""
    values = dict(_values(metric, entries))
    ordered = sorted(values.values(), reverse=metric.best != "low")
    return {name: 1 + ordered.index(value) for name, value in values.items()}


def _values(metric: Metric, entries: Sequence[Entry]) -> Iterator[tuple[str, float]]:
    for entry in entries:
        if not entry["reference"] and not entry["external"] and (value := metric.value(entry)) is not None:
            yield entry["forecaster"], value
