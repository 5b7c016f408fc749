"""The panel of the checked forecasts that count."""

import numpy as np

from forecast_rank.metrics.flat_arrays import Codes, spans
from forecast_rank.metrics.panel import Panel, Questions
from forecast_rank.ranking.row_codes import Mask, changes, name_codes, offsets_of
from forecast_rank.ranking.validation import ForecastValidator


def build_panel(validator: ForecastValidator, is_counted: Mask) -> Panel:
    """The panel of the forecasts where `is_counted`, (F,), is true."""
    selected_rows = np.flatnonzero(is_counted)
    sizes, first = validator.sizes[selected_rows], validator.first[selected_rows]
    new_question = changes(validator.question[selected_rows])
    questions, question = validator.question[selected_rows[new_question]], np.cumsum(new_question) - 1
    forecasters = np.flatnonzero(np.bincount(validator.forecaster[selected_rows], minlength=1))
    offsets = offsets_of(sizes)

    # The question's first forecast in the file gives the order of its options, unless the table states one.
    begins = np.flatnonzero(new_question)
    earliest = np.minimum.reduceat(first, begins) if len(begins) else first
    model = np.flatnonzero(first == earliest[question])
    option_offsets = offsets_of(sizes[model])
    option_rows = validator.rows[spans(validator.offsets[selected_rows[model]], sizes[model])]
    ranks = option_rows
    if option_order := validator.table.option_order:
        place = {name: k for k, name in enumerate(option_order)}
        of_code = np.array([place.get(name, len(place)) for name in validator.options])
        ranks = of_code[validator.option_code[option_rows]]
    order = np.lexsort((ranks, np.repeat(np.arange(len(questions)), sizes[model])))
    if len(selected_rows) == len(validator.sizes) and (order[1:] > order[:-1]).all():
        rows = validator.rows
    else:
        moved = order - np.repeat(option_offsets[:-1], sizes[model])
        sources = spans(option_offsets[:-1][question], sizes)
        rows = validator.rows[np.repeat(validator.offsets[selected_rows], sizes) + moved[sources]]
        del sources  # eight bytes a row
    option_rows = option_rows[order]

    starts = offsets[begins]
    event, event_names = _labels(validator, "event", rows, starts)
    category, category_names = _labels(validator, "category", rows, starts)
    names = [validator.questions[j] for j in questions]
    no_event = event < 0
    event[no_event] = len(event_names) + np.arange(no_event.sum())
    event_names += [name for name, alone in zip(names, no_event, strict=True) if alone]
    if (category < 0).any():
        category, category_names = category + 1, ["", *category_names]
    odds, no_odds = validator.odds[rows], validator.no_odds[rows]
    other_side = np.isnan(no_odds)
    no_odds[other_side] = 1 - odds[other_side]
    quote = validator.quote[rows]
    is_quoted = ~np.isnan(quote)
    return Panel(
        questions=Questions(
            offsets=option_offsets,
            outcome=validator.outcome[option_rows],
            exclusive=validator.exclusive[selected_rows[model]],
            event=event,
            category=category,
            closed_at=validator.first_stated(validator.closed_at, rows, starts) if len(starts) else np.zeros(0),
            names=names,
            option_names=[validator.options[k] for k in validator.option_code[option_rows]],
            event_names=event_names,
            category_names=category_names,
        ),
        forecasters=[validator.forecasters[i] for i in forecasters],
        forecaster=np.searchsorted(forecasters, validator.forecaster[selected_rows]),
        question=question,
        offsets=offsets,
        probability=validator.probability[rows],
        odds=odds,
        no_odds=no_odds,
        weight=validator.weight[first],
        made_at=validator.made_at[first],
        quote=np.where(is_quoted, quote, (odds + 1 - no_odds) / 2) if is_quoted.any() else None,
    )


def _labels(validator: ForecastValidator, column: str, rows: Codes, starts: Codes) -> tuple[Codes, list[str]]:
    """The label of each question, -1 without one, and the labels' names; questions begin at `starts` of `rows`."""
    codes, names = name_codes(validator.table.names[column])
    if not len(starts) or not names:
        return np.full(len(starts), -1, dtype=np.int64), []
    first_codes = validator.first_stated(np.where(codes < 0, np.nan, codes), rows, starts)
    used_codes, places = np.unique(first_codes[~np.isnan(first_codes)].astype(np.int64), return_inverse=True)
    labels = np.full(len(starts), -1, dtype=np.int64)
    labels[~np.isnan(first_codes)] = places
    return labels, [names[k] for k in used_codes]
