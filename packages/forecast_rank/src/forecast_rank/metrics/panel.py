"""Forecasts in columns: the data structure that every metric takes.

Two ragged tables as flat arrays. *Options* belong to questions and hold outcomes. *Cells* belong to forecasts (one
forecaster's vector on one question) and hold probabilities and prices; the cells of a forecast are in the order of its
question's options. Shapes: N forecasters, Q questions, O options, F forecasts, C cells.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes, ragged_max, spans

Result = TypeVar("Result")
AT_ONCE = 1 << 16
"""Forecasts whose cells are worked on at a time, to keep memory small."""


@dataclass(frozen=True)
class Questions:
    """Q questions with O options in all.

    Attributes
    ----------
    offsets : array of int, shape (Q + 1,)
        Question j has the options offsets[j] to offsets[j + 1].
    outcome : array, shape (O,)
        1 where the option happened, else 0; a fraction where a question is scored before it resolves.
    exclusive : array of bool, shape (Q,)
        Whether exactly one option can happen.
    event, category : arrays of int, shape (Q,)
        Codes into `event_names` and `category_names`. The questions of an event are resampled together.
    closed_at : array, shape (Q,)
        Seconds since 1970; NaN if unknown.
    names, option_names, event_names, category_names : list of str
    """

    offsets: Codes
    outcome: Floats
    exclusive: NDArray[np.bool_]
    event: Codes
    category: Codes
    closed_at: Floats
    names: list[str]
    option_names: list[str]
    event_names: list[str]
    category_names: list[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Codes:
        """Number of options of each question, (Q,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Panel:
    """F forecasts with C cells in all, ordered by question, then forecaster.

    Attributes
    ----------
    questions : Questions
    forecasters : list of str
    forecaster, question : arrays of int, shape (F,)
        Codes. A forecaster has at most one forecast on a question.
    offsets : array of int, shape (F + 1,)
        Forecast i has the cells offsets[i] to offsets[i + 1].
    probability : array, shape (C,)
        In [0, 1].
    odds, no_odds : arrays, shape (C,)
        Price of a contract that pays 1 if the option happens (does not happen), in (0, 1); NaN without a price.
    weight : array, shape (F,)
        Above 0. Every mean over a forecaster's forecasts is weighted by it.
    made_at : array, shape (F,)
        Seconds since 1970; NaN if unknown.
    quote : array, shape (C,), optional
        Mid prices, NaN without one; if not given they are computed from `odds` and `no_odds`.
    """

    questions: Questions
    forecasters: list[str]
    forecaster: Codes
    question: Codes
    offsets: Codes
    probability: Floats
    odds: Floats
    no_odds: Floats
    weight: Floats
    made_at: Floats
    quote: Floats | None = None
    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.forecaster)

    def shared(self, key: Any, compute: Callable[[], Result]) -> Result:
        """A result that several metrics of this panel take, computed by the first of them; nobody may change it."""
        if key not in self._shared:
            self._shared[key] = compute()
        return cast(Result, self._shared[key])

    @cached_property
    def sizes(self) -> Codes:
        """Number of options of each forecast's question, (F,)."""
        return np.diff(self.offsets)

    @cached_property
    def cell_forecast(self) -> Codes:
        """The forecast of each cell, (C,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def uncached(self) -> "Panel":
        """A copy without cached results, for a computation whose results would stay in memory."""
        return replace(self)

    @cached_property
    def cell_option(self) -> Codes:
        """The option of each cell, (C,)."""
        option = np.repeat(self.questions.offsets[self.question] - self.offsets[:-1], self.sizes)
        option += np.arange(len(option))
        return option

    @cached_property
    def outcome(self) -> Floats:
        """The outcome of each cell's option, (C,)."""
        # Not by `cell_option`, which would stay in memory, and some forecasts at a time: eight bytes a cell.
        outcome = np.empty(len(self.probability))
        for first in range(0, len(self), AT_ONCE):
            part = self.outcome_of(slice(first, first + AT_ONCE))
            outcome[self.offsets[first] : self.offsets[first] + len(part)] = part
        return outcome

    def outcome_of(self, forecasts: slice) -> Floats:
        """The outcome of each cell of some consecutive forecasts."""
        return self.questions.outcome[spans(self.questions.offsets[self.question[forecasts]], self.sizes[forecasts])]

    @cached_property
    def exclusive(self) -> NDArray[np.bool_]:
        """Whether the options of each forecast's question are exclusive, (F,)."""
        return self.questions.exclusive[self.question]

    @cached_property
    def priced(self) -> NDArray[np.bool_]:
        """Whether every option of each forecast has a price, (F,)."""
        return ~np.isnan(self.sum_cells(self.odds))

    @cached_property
    def mid(self) -> Floats:
        """Mid price of each cell, (C,): `quote`, else the mean of the YES ask and the YES bid, which is 1 − NO ask."""
        return (self.odds + 1 - self.no_odds) / 2 if self.quote is None else self.quote

    @cached_property
    def events(self) -> tuple[Codes, Codes]:
        """The codes of events with forecasts in order, (E,), and the place of each forecast's event in them, (F,)."""
        return distinct_codes(self.questions.event[self.question])

    def by_question(self, questions: Codes) -> Codes:
        """The forecasts on the first of these questions, then those on the second, and so on: (F,) for all of them."""
        bounds = np.searchsorted(self.question, np.arange(len(self.questions) + 1))
        return spans(bounds[questions], np.diff(bounds)[questions])

    def sum_cells(self, values: Floats) -> Floats:
        """Sums over the cells of each forecast: (C,) to (F,)."""
        return np.asarray(np.bincount(self.cell_forecast, values, len(self)), dtype=np.float64)

    def max_cells(self, values: Floats) -> Floats:
        """Maxima over the cells of each forecast: (C,) to (F,)."""
        return ragged_max(values, self.offsets[:-1], self.sizes)

    def spread(self, values: NDArray) -> NDArray:
        """The value of each forecast, repeated for its cells: (F,) to (C,)."""
        return np.repeat(values, self.sizes)

    def one_per_forecast(self, values: ArrayLike, name: str = "values") -> Floats:
        """The values as an array. Raises ValueError, with their name, if they are not one per forecast."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (len(self),):
            raise ValueError(f"{name}: one per forecast, {len(self)}, not shape {array.shape}")
        return array

    def forecaster_means(self, values: Floats, weight: Floats | None = None) -> Floats:
        """Weighted means over the forecasts of each forecaster: (F,) to (N,).

        NaN values are left out with their weight. NaN for a forecaster without values.
        """
        weight = self.weight if weight is None else weight
        is_counted = ~np.isnan(values)
        if not is_counted.all():
            values, weight = np.where(is_counted, values, 0.0), np.where(is_counted, weight, 0.0)
        total = np.bincount(self.forecaster, values * weight, len(self.forecasters))
        mass = np.bincount(self.forecaster, weight, len(self.forecasters))
        return np.divide(total, mass, out=np.full(len(self.forecasters), np.nan), where=mass > 0)

    def matrix(self, values: Floats) -> Floats:
        """Values of forecasts as a table of (N, Q), NaN where a forecaster made no forecast."""
        table = np.full((len(self.forecasters), len(self.questions)), np.nan)
        table[self.forecaster, self.question] = values
        return table

    def take(self, mask: NDArray[np.bool_]) -> "Panel":
        """The panel of the forecasts where `mask`, (F,), is true. Questions and forecasters keep their codes."""
        if mask.all():
            return self
        cells = self.spread(mask)
        return replace(
            self,
            forecaster=self.forecaster[mask],
            question=self.question[mask],
            offsets=np.concatenate([[0], np.cumsum(self.sizes[mask])]),
            probability=self.probability[cells],
            odds=self.odds[cells],
            no_odds=self.no_odds[cells],
            weight=self.weight[mask],
            made_at=self.made_at[mask],
            quote=None if self.quote is None else self.quote[cells],
        )


def from_arrays(
    probability: ArrayLike,
    outcome: ArrayLike,
    *,
    odds: ArrayLike | None = None,
    no_odds: ArrayLike | None = None,
    exclusive: bool = True,
    weight: ArrayLike | None = None,
    event: ArrayLike | None = None,
    closed_at: ArrayLike | None = None,
) -> Panel:
    """A panel from dense arrays: N forecasters on Q questions with n options each.

    Parameters
    ----------
    probability : array, shape (N, Q, n)
        NaN where a forecaster made no forecast.
    outcome : array, shape (Q, n)
    odds, no_odds : arrays, shape (Q, n), optional
        Prices, the same for all forecasters; `no_odds` defaults to 1 − `odds`.
    exclusive : bool
        Whether exactly one option of a question can happen.
    weight : array, shape (N, Q), optional
        Default 1.
    event : array, shape (Q,), optional
        Equal for questions of one event; each question is its own event by default.
    closed_at : array, shape (Q,), optional
        Seconds since 1970.

    Returns
    -------
    Panel
        With forecasters f0, f1, … and questions q0, q1, …

    Raises
    ------
    ValueError
        If shapes disagree.

    Examples
    --------
    >>> panel = from_arrays([[[0.8, 0.2], [0.5, 0.5]], [[0.6, 0.4], [np.nan, np.nan]]], [[1, 0], [0, 1]])
    >>> panel.forecasters, panel.forecaster.tolist(), panel.question.tolist()
    (['f0', 'f1'], [0, 1, 0], [0, 0, 1])
    """
    forecasts, outcomes = np.asarray(probability, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    if forecasts.ndim != 3 or outcomes.shape != forecasts.shape[1:]:
        raise ValueError(f"outcome: shape {outcomes.shape} does not go with probability of shape {forecasts.shape}")
    forecasters, questions, options = forecasts.shape
    ask = np.full(outcomes.shape, np.nan) if odds is None else np.asarray(odds, dtype=np.float64)
    no_ask = 1 - ask if no_odds is None else np.asarray(no_odds, dtype=np.float64)
    weights = np.ones((forecasters, questions)) if weight is None else np.asarray(weight, dtype=np.float64)
    names, codes = np.unique(np.arange(questions) if event is None else np.asarray(event), return_inverse=True)
    times = np.full(questions, np.nan) if closed_at is None else np.asarray(closed_at, dtype=np.float64)
    for name, array, shape in (
        ("odds", ask, outcomes.shape),
        ("no_odds", no_ask, outcomes.shape),
        ("weight", weights, (forecasters, questions)),
        ("event", codes, (questions,)),
        ("closed_at", times, (questions,)),
    ):
        if array.shape != shape:
            raise ValueError(f"{name}: shape {array.shape}, not {shape}")
    question, forecaster = np.nonzero(~np.isnan(forecasts).any(axis=2).T)
    return Panel(
        questions=Questions(
            offsets=options * np.arange(questions + 1),
            outcome=outcomes.ravel(),
            exclusive=np.full(questions, exclusive),
            event=codes,
            category=np.zeros(questions, dtype=np.int64),
            closed_at=times,
            names=[f"q{j}" for j in range(questions)],
            option_names=[str(k) for k in range(options)] * questions,
            event_names=[str(name) for name in names],
            category_names=[""],
        ),
        forecasters=[f"f{i}" for i in range(forecasters)],
        forecaster=forecaster,
        question=question,
        offsets=options * np.arange(len(question) + 1),
        probability=forecasts[forecaster, question].ravel(),
        odds=ask[question].ravel(),
        no_odds=no_ask[question].ravel(),
        weight=weights[forecaster, question],
        made_at=np.full(len(question), np.nan),
    )


MARKET, UNIFORM, ENSEMBLE = REFERENCES = ("market", "uniform", "ensemble")


def references(panel: Panel) -> Panel:
    """The reference forecasters *market*, *uniform* and *ensemble* on the questions of a panel.

    *market* forecasts the mean mid price of the forecasts with prices, normalised to sum 1 where options are exclusive;
    it makes no forecast on a question without prices. *uniform* forecasts 1/n, or 0.5 per option where options are not
    exclusive. *ensemble* forecasts the unweighted mean of the forecasters. All carry the mean prices and the smallest
    weight of the question's forecasts: they miss no question, and a forecaster that misses some of a repeated question
    weighs the rest more.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    Panel
        On the same `questions`.
    """
    answers = np.bincount(panel.question, minlength=len(panel.questions))
    options, sizes = panel.cell_option, panel.questions.sizes
    priced = panel.spread(panel.priced)
    total = len(panel.questions.outcome)
    quoted = panel.spread(~np.isnan(panel.sum_cells(panel.mid)))

    def mean(values: Floats, mask: NDArray) -> Floats:
        """The mean by option; of equal values exactly that value."""
        value = np.full(total, np.nan)
        value[options[mask]] = values[mask]
        sums = np.bincount(options[mask], values[mask] - value[options[mask]], total)
        return value + sums / np.maximum(np.bincount(options[mask], minlength=total), 1)

    odds, no_odds, mid = mean(panel.odds, priced), mean(panel.no_odds, priced), mean(panel.mid, quoted)
    of_question = np.repeat(np.arange(len(panel.questions)), sizes)
    exclusive = panel.questions.exclusive[of_question]
    mid_sums = np.bincount(of_question, mid, len(panel.questions))  # NaN where a price is missing
    mid_sum = mid_sums[of_question]
    probabilities = (
        np.where(exclusive, mid / np.where(exclusive & (mid_sum > 0), mid_sum, 1.0), mid),
        np.where(exclusive, 1 / np.maximum(sizes, 1)[of_question], 0.5),
        mean(panel.probability, np.ones(len(options), bool)),
    )
    weights = np.full(len(panel.questions), np.inf)
    np.minimum.at(weights, panel.question, panel.weight)
    answered = answers > 0
    is_quoted = (mid_sums > 0) | (mid_sums == 0) & ~panel.questions.exclusive
    has_forecast = (answered & is_quoted, answered, answered)
    # Sorted by question, then forecaster, like every panel.
    mask = np.stack(has_forecast, axis=1)
    question, forecaster = np.nonzero(mask)
    counts = sizes[question]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    cells = np.arange(offsets[-1]) + np.repeat(panel.questions.offsets[question] - offsets[:-1], counts)
    table = np.stack(probabilities)
    return Panel(
        questions=panel.questions,
        forecasters=list(REFERENCES),
        forecaster=forecaster,
        question=question,
        offsets=offsets,
        probability=table[np.repeat(forecaster, counts), cells],
        odds=odds[cells],
        no_odds=no_odds[cells],
        weight=weights[question],
        made_at=np.full(len(question), np.nan),
        quote=None if panel.quote is None else mid[cells],
    )
