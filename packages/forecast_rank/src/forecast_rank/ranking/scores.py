"""The scores that rank forecasters, each declared once."""

from math import inf
from typing import NamedTuple

UNLIMITED = (-inf, inf)


class RankingScore(NamedTuple):
    """A score that ranks forecasters.

    name : of its ranking, and of the metric by which it is asked for
    label : the ranking in words, where its name is another
    figure : the figure that orders the ranking, where its name is another
    limits : the range of its mean, at which an interval ends
    is_usual : whether it is computed unless metrics are named
    is_metric : false for one that others bring along
    """

    name: str
    label: str = ""
    figure: str = ""
    limits: tuple[float, float] = UNLIMITED
    is_usual: bool = True
    is_metric: bool = True


SCORES = (
    RankingScore("brier", "Brier score", limits=(0, 1)),
    RankingScore("log", "log score", limits=(-inf, 0)),
    RankingScore("spherical", "spherical score", limits=(0, 1)),
    RankingScore("accuracy", limits=(0, 1), is_metric=False),
    RankingScore("average_return", limits=(0, inf)),
    RankingScore("alpha", limits=(-1, 1)),
    RankingScore("calibration", "calibration error", "ece"),
    RankingScore("thurstone_mosteller", "Thurstone–Mosteller", "tm_ability"),
    # A coin flip with tight intervals where forecasters differ by symmetric noise.
    RankingScore("bradley_terry", "Bradley–Terry (wins)", "bt_ability", is_usual=False),
    RankingScore("irt", "IRT ability", "irt_ability"),
    RankingScore("weighted_brier", "weighted Brier", limits=(0, 1)),
    RankingScore("adjusted_brier", "adjusted Brier", limits=(0, 1)),
    # It takes the options of a question to be in order.
    RankingScore("ranked_probability", limits=(0, 1), is_usual=False),
    # Statisticians ask for it by name.
    RankingScore("auc", is_usual=False),
)
METRICS = tuple(score.name for score in SCORES if score.is_metric)
USUAL_METRICS = tuple(score.name for score in SCORES if score.is_metric and score.is_usual)
LABELS = {score.name: score.label for score in SCORES if score.label}
FIGURES = {score.name: score.figure for score in SCORES if score.figure}
LIMITS = {score.name: score.limits for score in SCORES}
