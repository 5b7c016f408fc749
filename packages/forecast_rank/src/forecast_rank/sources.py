"""Reading of forecasts, whatever their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from forecast_rank.ranking.forecasts import LoadedForecasts, read_forecasts
from forecast_rank.ranking.settings import InvalidSetting

Source = Any
"""A path or several, a polars, pandas or Arrow table, or forecasts that `read` returned."""


def read(
    source: Source,
    format: str | None = None,
    *,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
    order: Iterable[str] | str = (),
    columns: Mapping[str, str] | Iterable[str] | str = (),
) -> LoadedForecasts:
    """The probabilities of a file or frame in long or wide form, checked row by row.

    Parameters
    ----------
    source : path, list of paths, polars.DataFrame, pandas.DataFrame or Arrow table
        One row per forecaster, question and option, with the columns `forecaster, question, probability, outcome` and
        optionally `option, odds, no_odds, quote, event, category, made_at, closed_at, weight, exclusive`; or `question,
        outcome` and a column for each forecaster. A file may be packed with gzip or zstd; "-" is standard input.
        Several paths are the files that a publisher's format consists of.
    format : {"csv", "xlsx", "parquet", "jsonl"} or a publisher's format, optional
        Format of a file; by its content and suffix if not given. The publishers' are "gjo", "prophet_csv",
        "prophet_tasks", "forecastbench", "kalshibench", "polystrat" and "metaculus".
    strict : bool
        Raise for the first row that cannot be used, instead of rejecting it.
    fractional_outcomes : bool
        Allow outcomes between 0 and 1: unresolved questions scored against a price.
    normalise : bool
        Divide the probabilities of exclusive options by their sum where that is within 0.02 of 1.
    order : list of str, or str separated by commas
        The names of all options in order, for the ranked probability score. Otherwise they have the order of an ordered
        categorical (pandas) or Enum (polars), else that of the question's first forecast.

    columns : dict, or str such as "question=date,forecaster=model"
        The headings of columns that are not named after what they hold.

    Returns
    -------
    LoadedForecasts
        The panel, and the rejected rows with line number and reason.

    Raises
    ------
    UnreadableFile
        If the source as a whole cannot be used.
    InvalidRow
        With `strict`, for the first row that cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"forecaster": ["ann"], "question": ["q"], "probability": [0.8], "outcome": [1]})
    >>> read(frame).panel.forecasters
    ['ann']
    """
    return read_forecasts(
        source,
        format,
        strict=strict,
        fractional_outcomes=fractional_outcomes,
        normalise=normalise,
        order=comma_separated(order, distinct=False),
        columns=named_columns(columns),
    )


def named_columns(columns: Mapping[str, str] | Iterable[str] | str) -> dict[str, str]:
    """Headings by column, of a dictionary or of texts such as "question=date". Raises InvalidSetting."""
    if isinstance(columns, Mapping):
        return dict(columns)
    name_of: dict[str, str] = {}
    for text in comma_separated(columns):
        name, sign, heading = text.partition("=")
        if not (sign and name.strip() and heading.strip()):
            raise InvalidSetting(f"columns: {text!r} is not of the form COLUMN=HEADING")
        if name.strip() in name_of:
            raise InvalidSetting(f"columns: {name.strip()} is named twice")
        name_of[name.strip()] = heading.strip()
    return name_of


def comma_separated(values: Any, *, distinct: bool = True) -> tuple[str, ...]:
    """A list, or text separated by commas, as texts: 0.5 as "0.5", 0.0 as "0"."""
    if isinstance(values, str):
        values = values.split(",")
    elif isinstance(values, int | float):
        values = [values]
    texts = (f"{value:g}" if isinstance(value, int | float) else str(value).strip() for value in values)
    present = tuple(text for text in texts if text)
    return tuple(dict.fromkeys(present)) if distinct else present
