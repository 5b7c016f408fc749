"""The reference forecasters: market, uniform and three ensembles of the families' forecasts."""

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from scoring.constants import ENSEMBLE, ENSEMBLE_EXTREMISED, ENSEMBLE_MEDIAN, EXTREMISING, MARKET, UNIFORM


def reference_vectors(families: Panel, quote: Floats) -> dict[str, Floats]:
    """Each reference's probabilities of all options of the panel's questions, (O,) like `quote`, their mid prices.

    NaN for the options of a question on which a reference has no forecast: the market without a price of every
    option, an ensemble without a family's forecast.
    """
    questions = families.questions
    owner = np.repeat(np.arange(len(questions)), questions.sizes)
    exclusive = questions.exclusive[owner]

    def total(values: Floats) -> Floats:
        """The sum over the options of each option's question, as for forecasts: the market's alpha is 0."""
        sums: Floats = np.bincount(owner, values, len(questions)).astype(np.float64)
        return sums[owner]

    vectors = np.full((max(len(families.forecasters), 1), len(quote)), np.nan)
    vectors[families.spread(families.forecaster), families.cell_option] = families.probability
    mean, median, extremised = ensembles(vectors)
    quotes, medians = total(quote), total(median)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            MARKET: np.where(exclusive, quote / quotes, np.where(np.isnan(quotes), np.nan, quote)),
            UNIFORM: np.where(exclusive, 1 / np.repeat(questions.sizes, questions.sizes), 0.5),
            ENSEMBLE: mean,
            # The median of each of several exclusive options may be 0.
            ENSEMBLE_MEDIAN: np.where(exclusive, np.where(medians > 0, median / medians, mean), median),
            ENSEMBLE_EXTREMISED: np.where(exclusive, extremised / total(extremised), extremised),
        }


def ensembles(vectors: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean, the median and the extremised mean of the forecasters' probabilities of each option, (O,) each.

    `vectors` has a row per forecaster, NaN where it has no forecast. Not brought to a sum of 1.

    Examples
    --------
    >>> crowd = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, np.nan]])
    >>> [row.round(4).tolist() for row in ensembles(crowd)]
    [[0.7, 0.25], [0.6, 0.25], [0.7809, 0.1614]]
    """
    ordered, option = np.sort(vectors, axis=0), np.arange(vectors.shape[1])  # NaN last
    number = (~np.isnan(vectors)).sum(axis=0)
    with np.errstate(invalid="ignore"):
        mean = np.nansum(ordered, axis=0) / number
        sure, unsure = mean**EXTREMISING, (1 - mean) ** EXTREMISING
    median = (ordered[(number - 1) // 2, option] + ordered[number // 2, option]) / 2
    return mean, median, sure / (sure + unsure)
