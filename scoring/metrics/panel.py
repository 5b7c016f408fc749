"""Forecasts in columns: the one shape that every metric takes.

Two ragged tables as flat arrays. *Options* belong to questions and hold what happened. *Cells* belong to forecasts
(one forecaster's vector on one question) and hold what was said and the prices seen; the cells of a forecast are in
the order of its question's options. Names are kept apart from their codes.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Questions:
    """What was asked, Q questions with O options in all.

    offsets : (Q + 1,), options of question j are offsets[j] to offsets[j + 1]
    outcome : (O,), 1 where the option happened, else 0; a fraction where a question is scored before its end
    exclusive : (Q,), True where exactly one option can happen
    event, category : (Q,), codes into `event_names` and `category_names`; an event's questions are resampled together
    closed_at : (Q,), seconds since 1970, NaN where not known
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
        """Options of each question, (Q,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Panel:
    """Forecasts of `forecasters` on `questions`: F forecasts with C cells in all, ordered by question, then forecaster.

    forecaster, question : (F,), codes; a forecaster has at most one forecast on a question
    offsets : (F + 1,), cells of forecast i are offsets[i] to offsets[i + 1]
    probability : (C,), in [0, 1]
    odds, no_odds : (C,), the price of a contract that pays 1 if the option happens (does not happen), in (0, 1);
        NaN where no price was seen
    weight : (F,), above 0; every mean over a forecaster's forecasts is weighted by it
    made_at : (F,), seconds since 1970, NaN where not known
    quote : (C,), the mid price where it is known by itself, NaN where there is none; None: asks alone are known
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

    def __len__(self) -> int:
        return len(self.forecaster)

    @cached_property
    def sizes(self) -> Codes:
        """Options of each forecast's question, (F,)."""
        return np.diff(self.offsets)

    @cached_property
    def cell_forecast(self) -> Codes:
        """The forecast that each cell belongs to, (C,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def cell_option(self) -> Codes:
        """The option that each cell is about, (C,)."""
        shift = self.questions.offsets[self.question] - self.offsets[:-1]
        return np.arange(len(self.probability)) + np.repeat(shift, self.sizes)

    @cached_property
    def outcome(self) -> Floats:
        """What happened to the option of each cell, (C,)."""
        return self.questions.outcome[self.cell_option]

    @cached_property
    def exclusive(self) -> NDArray[np.bool_]:
        """Whether each forecast's options exclude each other, (F,)."""
        return self.questions.exclusive[self.question]

    @cached_property
    def priced(self) -> NDArray[np.bool_]:
        """Whether a price was seen for every option of each forecast, (F,)."""
        return ~np.isnan(self.sum_cells(self.odds))

    @cached_property
    def mid(self) -> Floats:
        """Each cell's quote, (C,), else half way between ask and bid of YES; the NO ask is one less the YES bid."""
        return (self.odds + 1 - self.no_odds) / 2 if self.quote is None else self.quote

    def sum_cells(self, values: Floats) -> Floats:
        """Sums over the cells of each forecast: (C,) to (F,)."""
        return np.asarray(np.bincount(self.cell_forecast, values, len(self)), dtype=np.float64)

    def max_cells(self, values: Floats) -> Floats:
        """The largest of each forecast's cells: (C,) to (F,)."""
        return ragged_max(values, self.offsets[:-1], self.sizes)

    def spread(self, values: NDArray) -> NDArray:
        """Each forecast's value at each of its cells: (F,) to (C,)."""
        return np.repeat(values, self.sizes)

    def forecaster_means(self, values: Floats, weight: Floats | None = None) -> Floats:
        """Weighted means over the forecasts of each forecaster: (F,) to (forecasters,).

        A forecast whose value is NaN (no price, say) is left out with its weight; NaN for a forecaster with none.
        """
        weight = self.weight if weight is None else weight
        counted = ~np.isnan(values)
        weight = np.where(counted, weight, 0.0)
        total = np.bincount(self.forecaster, np.where(counted, values, 0.0) * weight, len(self.forecasters))
        mass = np.bincount(self.forecaster, weight, len(self.forecasters))
        return np.divide(total, mass, out=np.full(len(self.forecasters), np.nan), where=mass > 0)

    def matrix(self, values: Floats) -> Floats:
        """Forecasts' values as a table of (forecasters, questions), NaN where a forecaster was silent."""
        table = np.full((len(self.forecasters), len(self.questions)), np.nan)
        table[self.forecaster, self.question] = values
        return table

    def take(self, mask: NDArray[np.bool_]) -> "Panel":
        """The panel of the forecasts where `mask`, (F,), is true; questions and forecasters keep their codes."""
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


def ragged_max(values: Floats, starts: Codes, sizes: Codes) -> Floats:
    """The largest of values[start : start + size] for each start; several times as fast as `maximum.reduceat`."""
    largest = values[starts]
    rest, column = np.flatnonzero(sizes > 1), 1
    while len(rest):
        largest[rest] = np.maximum(largest[rest], values[starts[rest] + column])
        column += 1
        rest = rest[sizes[rest] > column]
    return largest


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
    """The panel of a table of forecasts: N forecasters on Q questions of n options each, all of one kind.

    Parameters
    ----------
    probability : array of shape (N, Q, n), NaN where a forecaster was silent
    outcome : array of shape (Q, n)
    odds, no_odds : arrays of shape (Q, n), prices that all forecasters saw; NO costs 1 - odds where not given
    exclusive : whether exactly one option of a question can happen
    weight : array of shape (N, Q), 1 if not given
    event : array of shape (Q,), equal where questions belong together; each its own if not given
    closed_at : array of shape (Q,), seconds since 1970

    Raises ValueError where shapes disagree.

    Examples
    --------
    >>> panel = from_arrays([[[0.8, 0.2], [0.5, 0.5]], [[0.6, 0.4], [np.nan, np.nan]]], [[1, 0], [0, 1]])
    >>> panel.forecasters, panel.forecaster.tolist(), panel.question.tolist()
    (['f0', 'f1'], [0, 1, 0], [0, 0, 1])
    """
    said, happened = np.asarray(probability, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    if said.ndim != 3 or happened.shape != said.shape[1:]:
        raise ValueError(f"outcome: shape {happened.shape} does not go with probability of shape {said.shape}")
    forecasters, questions, options = said.shape
    ask = np.full(happened.shape, np.nan) if odds is None else np.asarray(odds, dtype=np.float64)
    no_ask = 1 - ask if no_odds is None else np.asarray(no_odds, dtype=np.float64)
    weights = np.ones((forecasters, questions)) if weight is None else np.asarray(weight, dtype=np.float64)
    names, codes = np.unique(np.arange(questions) if event is None else np.asarray(event), return_inverse=True)
    times = np.full(questions, np.nan) if closed_at is None else np.asarray(closed_at, dtype=np.float64)
    for name, array, shape in (
        ("odds", ask, happened.shape),
        ("no_odds", no_ask, happened.shape),
        ("weight", weights, (forecasters, questions)),
        ("event", codes, (questions,)),
        ("closed_at", times, (questions,)),
    ):
        if array.shape != shape:
            raise ValueError(f"{name}: shape {array.shape}, not {shape}")
    question, forecaster = np.nonzero(~np.isnan(said).any(axis=2).T)
    return Panel(
        questions=Questions(
            offsets=options * np.arange(questions + 1),
            outcome=happened.ravel(),
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
        probability=said[forecaster, question].ravel(),
        odds=ask[question].ravel(),
        no_odds=no_ask[question].ravel(),
        weight=weights[forecaster, question],
        made_at=np.full(len(question), np.nan),
    )


MARKET, UNIFORM, ENSEMBLE = REFERENCES = ("market", "uniform", "ensemble")


def references(panel: Panel) -> Panel:
    """The three reference forecasters on the same questions, as a panel of their own.

    *market* says the mid prices, averaged over the forecasts on the question that saw prices, divided by their sum
    where options are exclusive; it is silent where nobody saw a price. *uniform* says 1/n, 0.5 per option where options
    are not exclusive. *ensemble* says the unweighted mean of the forecasters. All carry the mean prices and the mean
    weight of the question's forecasts.
    """
    asked = np.bincount(panel.question, minlength=len(panel.questions))
    options, sizes = panel.cell_option, panel.questions.sizes
    priced = panel.spread(panel.priced)
    total = len(panel.questions.outcome)
    seen = np.bincount(options, priced, total)
    said = np.bincount(options, minlength=total)

    def mean(values: Floats, mask: NDArray, count: NDArray) -> Floats:
        sums = np.bincount(options[mask], values[mask], total)
        return np.divide(sums, count, out=np.full(total, np.nan), where=count > 0)

    odds, no_odds = mean(panel.odds, priced, seen), mean(panel.no_odds, priced, seen)
    mid = (odds + 1 - no_odds) / 2
    of_question = np.repeat(np.arange(len(panel.questions)), sizes)
    exclusive = panel.questions.exclusive[of_question]
    mid_sums = np.bincount(of_question, mid, len(panel.questions))  # NaN where a price is missing
    mid_sum = mid_sums[of_question]
    says = (
        np.where(exclusive, mid / np.where(exclusive, mid_sum, 1.0), mid),
        np.where(exclusive, 1 / np.maximum(sizes, 1)[of_question], 0.5),
        mean(panel.probability, np.ones(len(options), bool), said),
    )
    weights = np.bincount(panel.question, panel.weight, len(panel.questions)) / np.maximum(asked, 1)
    answered = asked > 0
    speaks = (answered & ~np.isnan(mid_sums), answered, answered)
    # By question, then forecaster: as every panel.
    mask = np.stack(speaks, axis=1)
    question, forecaster = np.nonzero(mask)
    counts = sizes[question]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    cells = np.arange(offsets[-1]) + np.repeat(panel.questions.offsets[question] - offsets[:-1], counts)
    table = np.stack(says)
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
    )
