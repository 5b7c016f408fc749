"""Panels for tests: small ones written out forecast by forecast, large ones whose truth is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, Questions, from_arrays

Row = dict[str, Any]
DAY = 86_400.0


def rows_of(
    forecaster: str,
    question: str,
    probabilities: Sequence[float],
    outcome: int | Sequence[float],
    odds: Sequence[float] | None = None,
    no_odds: Sequence[float] | None = None,
    **fields: Any,
) -> list[Row]:
    """The long rows of one forecast. `outcome` is the option that happened, or what happened to each option.

    `rest` may hold event, category, made_at, closed_at, weight, exclusive. Without `no_odds`, NO costs 1 - odds.
    """
    happened = [float(k == outcome) for k in range(len(probabilities))] if isinstance(outcome, int) else list(outcome)
    rows: list[Row] = []
    for k, probability in enumerate(probabilities):
        row = {"forecaster": forecaster, "question": question, "option": str(k), "probability": probability, **fields}
        row["outcome"] = happened[k]
        if odds is not None:
            row["odds"] = odds[k]
        if no_odds is not None:
            row["no_odds"] = no_odds[k]
        rows.append(row)
    return rows


def answers(**probabilities: Sequence[float]) -> list[Row]:
    """The rows of forecasters by name on questions q0, q1, … with two options, of which the first always happened."""
    return [
        row
        for name, vectors in probabilities.items()
        for k, p in enumerate(vectors)
        for row in rows_of(name, f"q{k}", [p, round(1 - p, 9)], 0)
    ]


def panel(rows: Iterable[Row]) -> Panel:
    """The panel of long rows (see `rows_of`); forecasters, questions, options and events in order of first appearance.

    The rows of a question give its options in the same order for every forecaster.
    """
    vectors: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        vectors.setdefault((row["question"], row["forecaster"]), []).append(row)
    order = list(dict.fromkeys(question for question, _ in vectors))
    forecasters = list(dict.fromkeys(name for _, name in vectors))
    code, person = {name: j for j, name in enumerate(order)}, {name: i for i, name in enumerate(forecasters)}
    ordered = sorted(vectors.items(), key=lambda item: (code[item[0][0]], person[item[0][1]]))
    first: dict[str, list[Row]] = {}
    for (question, _), vector in ordered:
        first.setdefault(question, vector)
    heads = [first[question][0] for question in order]
    events = [str(head.get("event", head["question"])) for head in heads]
    categories = [str(head.get("category", "")) for head in heads]
    event_names, category_names = list(dict.fromkeys(events)), list(dict.fromkeys(categories))
    options = [row for question in order for row in first[question]]
    cells = [row for _, vector in ordered for row in vector]
    odds = _floats(row.get("odds", np.nan) for row in cells)
    no_odds = _floats(row.get("no_odds", np.nan) for row in cells)
    return Panel(
        questions=Questions(
            offsets=_offsets(len(first[question]) for question in order),
            outcome=_floats(row["outcome"] for row in options),
            exclusive=np.array([bool(head.get("exclusive", True)) for head in heads], dtype=bool),
            event=np.array([event_names.index(name) for name in events], dtype=np.int64),
            category=np.array([category_names.index(name) for name in categories], dtype=np.int64),
            closed_at=_floats(head.get("closed_at", np.nan) for head in heads),
            names=order,
            option_names=[row["option"] for row in options],
            event_names=event_names,
            category_names=category_names,
        ),
        forecasters=forecasters,
        forecaster=np.array([person[name] for (_, name), _ in ordered], dtype=np.int64),
        question=np.array([code[question] for (question, _), _ in ordered], dtype=np.int64),
        offsets=_offsets(len(vector) for _, vector in ordered),
        probability=_floats(row["probability"] for row in cells),
        odds=odds,
        no_odds=np.where(np.isnan(no_odds), 1 - odds, no_odds),
        weight=_floats(vector[0].get("weight", 1.0) for _, vector in ordered),
        made_at=_floats(vector[0].get("made_at", np.nan) for _, vector in ordered),
    )


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=np.float64)


def _offsets(sizes: Iterable[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(list(sizes), dtype=np.int64)]).astype(np.int64)


EMPTY = panel([])


@dataclass(frozen=True)
class Synthetic:
    """Made forecasts with the truth behind them.

    noise : (forecasters,), the sd of each forecaster's error in logits: smaller is better
    truth : (options,), the probability with which each option happens
    """

    panel: Panel
    noise: Floats
    truth: Floats


def synthetic(
    forecasters: int,
    questions: int,
    seed: int,
    *,
    missing: float = 0.15,
    options: Sequence[float] = (0.50, 0.26, 0.16, 0.08),
    exclusive: float = 1.0,
    priced: float = 1.0,
    event_size: int = 1,
    noise: tuple[float, float] = (0.2, 1.5),
    market_noise: float = 0.5,
    overround: float = 0.04,
    weighted: bool = False,
) -> Synthetic:
    """Forecasters of known skill on questions of known probabilities; the same for the same arguments.

    A question has 2, 3, … options with the probabilities `options`; an `exclusive` share of them exclude each other
    (softmax of normal logits, one happens), in the others each option happens by itself. A forecaster says the truth
    with normal errors of their own `noise` in logits (evenly spaced from the first to the last), the market with
    `market_noise`; asks lie `overround` / 2 per option above the market's probability. The questions of an event share
    an error that all forecasters make. A share `missing` of the forecasts is left out, a share `priced` of the
    questions has prices.
    """
    generator = np.random.default_rng(seed)
    sizes = generator.choice(np.arange(2, 2 + len(options)), questions, p=options)
    offsets = _offsets(sizes)
    total = int(offsets[-1])
    excludes = generator.random(questions) < exclusive
    owner = np.repeat(np.arange(questions), sizes)
    event = np.arange(questions) // event_size
    latent = generator.normal(0, 1.5, total)
    shared = generator.normal(0, 0.5, total) if event_size > 1 else np.zeros(total)

    def probabilities(logits: Floats, group: np.ndarray, exclusive_options: np.ndarray) -> Floats:
        """Softmax over each group's options where they exclude each other, the logistic function elsewhere."""
        # The error can be large, so each logit is bounded: nobody says exactly 0 or 1 by rounding.
        powers = np.exp(np.clip(logits, -12, 12))
        return np.where(exclusive_options, powers / np.bincount(group, powers)[group], powers / (1 + powers))

    truth = probabilities(latent, owner, excludes[owner])
    # The largest of logit + Gumbel noise is option k with the softmax probability of k.
    drawn = latent + generator.gumbel(size=total)
    best = np.maximum.reduceat(drawn, offsets[:-1]) if questions else drawn
    happened = np.where(excludes[owner], drawn == best[owner], generator.random(total) < truth)

    market = probabilities(latent + generator.normal(0, market_noise, total), owner, excludes[owner])
    with_price = (generator.random(questions) < priced)[owner]
    odds = np.where(with_price, np.clip(market + overround / 2, 0.01, 0.99), np.nan)
    no_odds = np.where(with_price, np.clip(1 - market + overround / 2, 0.01, 0.99), np.nan)

    errors = np.linspace(*noise, forecasters)
    question, forecaster = np.nonzero(generator.random((questions, forecasters)) >= missing)
    counts = sizes[question]
    cells = _offsets(counts)
    option = np.arange(cells[-1]) + np.repeat(offsets[question] - cells[:-1], counts)
    scale = np.repeat(errors[forecaster], counts)
    logits = latent[option] + shared[option] + scale * generator.normal(0, 1, len(option))
    forecast = np.repeat(np.arange(len(question)), counts)
    probability = probabilities(logits, forecast, excludes[owner[option]])
    weight = generator.choice([0.5, 1.0, 2.0], len(question)) if weighted else np.ones(len(question))
    panel = Panel(
        questions=Questions(
            offsets=offsets,
            outcome=happened.astype(np.float64),
            exclusive=excludes,
            event=event,
            category=np.arange(questions) % 4,
            closed_at=1.7e9 + DAY * generator.permutation(questions),
            names=[f"q{j:05d}" for j in range(questions)],
            option_names=[str(k) for k in np.arange(total) - offsets[owner]],
            event_names=[f"e{j:05d}" for j in range(int(event[-1]) + 1 if questions else 0)],
            category_names=["Politics", "Sports", "Economics", "Weather"],
        ),
        forecasters=[f"f{i:02d}" for i in range(forecasters)],
        forecaster=forecaster,
        question=question,
        offsets=cells,
        probability=probability,
        odds=odds[option],
        no_odds=no_odds[option],
        weight=weight,
        made_at=np.full(len(question), np.nan),
    )
    return Synthetic(panel, errors, truth)


def scored(
    values: Sequence[Sequence[float]] | Floats,
    event: Sequence[int] | np.ndarray | None = None,
    weight: Sequence[Sequence[float]] | Floats | float = 1.0,
) -> tuple[Panel, Floats]:
    """A panel for a table of values, (forecasters, questions), NaN where silent, and the values of its forecasts.

    `event` holds the event of each question, by default one each. What was said and what happened is of no account.
    """
    table = np.asarray(values, dtype=np.float64)
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), table.shape)
    halves = np.where(np.isnan(table), np.nan, 0.5)[:, :, None]
    panel = from_arrays(halves, np.zeros((table.shape[1], 1)), exclusive=False, weight=weights, event=event)
    return panel, table[panel.forecaster, panel.question]


def long_rows(forecasts: Panel) -> list[Row]:
    """The long rows of a panel, by question and forecaster."""
    questions, rows = forecasts.questions, []
    for i, (person, item) in enumerate(zip(forecasts.forecaster, forecasts.question, strict=True)):
        cells = slice(forecasts.offsets[i], forecasts.offsets[i + 1])
        vector = rows_of(
            forecasts.forecasters[person],
            questions.names[item],
            forecasts.probability[cells],
            forecasts.outcome[cells],
            forecasts.odds[cells],
            forecasts.no_odds[cells],
            event=questions.event_names[questions.event[item]],
            category=questions.category_names[questions.category[item]],
            closed_at=questions.closed_at[item],
            weight=forecasts.weight[i],
            exclusive=questions.exclusive[item],
        )
        options = [questions.option_names[k] for k in forecasts.cell_option[cells]]
        rows += [row | {"option": option} for row, option in zip(vector, options, strict=True)]
    return rows


def stated_probabilities(forecasts: Panel) -> dict[tuple[str, str], dict[str, float]]:
    """The probability of each option, by forecaster and question."""
    vectors: dict[tuple[str, str], dict[str, float]] = {}
    for row in long_rows(forecasts):
        vectors.setdefault((row["forecaster"], row["question"]), {})[row["option"]] = float(row["probability"])
    return vectors


def relabelled(forecasts: Panel, seed: int) -> tuple[Panel, list[int], list[int]]:
    """The same forecasts with forecasters, questions and options in another order, and the old codes of the former."""
    rows, generator = long_rows(forecasts), np.random.default_rng(seed)
    person = {name: k for k, name in enumerate(generator.permutation(forecasts.forecasters))}
    item = {name: k for k, name in enumerate(generator.permutation(forecasts.questions.names))}
    moved = panel(sorted(rows, key=lambda row: (item[row["question"]], person[row["forecaster"]], -int(row["option"]))))
    order = [forecasts.questions.names.index(name) for name in moved.questions.names]
    return moved, [forecasts.forecasters.index(name) for name in moved.forecasters], order
