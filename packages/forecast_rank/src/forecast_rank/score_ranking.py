"""Rankings by scores that are already computed, with the intervals, rank ranges and tests of every other ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.columns import BINARY
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.named_columns import read_named_columns
from forecast_rank.metrics.difficulty_adjustment import adjusted_brier
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, Questions
from forecast_rank.metrics.uncertainty import event_sums
from forecast_rank.ranking.figure_table import UNLIMITED, FigureTable
from forecast_rank.ranking.names import listed
from forecast_rank.ranking.pair_comparisons import add_relative_skill, compared_pairs
from forecast_rank.ranking.rejections import check_rejected, rejections
from forecast_rank.ranking.report import agreement_table, assemble_report
from forecast_rank.ranking.settings import InvalidSetting, Settings
from forecast_rank.reports import Report
from forecast_rank.score_rows import KEY, PLACE, CheckedRows

ADJUSTED = "adjusted_"
OPTIONAL = ("event", "weight", "made_at", "closed_at")
RESERVED = frozenset({*KEY, *OPTIONAL, PLACE, "n", "coverage", "rank_range", "rank_ranges", "probability_best"})
"""Names of other columns and figures."""


def rank_scores(
    source: Any,
    *,
    lower: Iterable[str] | str = (),
    higher: Iterable[str] | str = (),
    relative: bool = False,
    strict: bool = False,
    allow_rejected: bool = False,
    **options: Any,
) -> Report:
    """Ranks forecasters by scores of their forecasts, whatever the rule: numeric, time-weighted, one's own.

    Parameters
    ----------
    source : path, polars.DataFrame, pandas.DataFrame or Arrow table
        A row for each forecast with the columns `forecaster`, `question` and the scores; optionally `event` (questions
        of one event are resampled together), `weight`, and `made_at` and `closed_at`, of which the latest version
        made before the question closed counts. Other columns are ignored. A path is CSV, Parquet or JSON Lines.
    lower, higher : list of str, or str separated by commas
        The columns in which a lower, or a higher, score is better.
    relative : bool
        Whether to add the relative skill by the first score, of which lower is better and none is below 0.
    strict, allow_rejected : bool
        As in `rank`.
    **options
        `bootstrap`, `seed`, `interval`, `level`, `min_questions`, `pairs`, `horizon` and `baseline`, as in `rank`.

    Returns
    -------
    Report
        Each score has a second ranking, `adjusted_NAME`, by the forecaster's effect beside that of the question; that
        of the first score heads the report where forecasters answered different questions. Pairs are compared in the
        first score. There are no references.

    Raises
    ------
    UnreadableFile
        If a column is missing, no score is named, or one has the name of another column or figure.
    InvalidRow
        With `strict`, for the first row that does not count: one without a forecaster or question, with a score or
        weight that is no number, or with another score than an earlier row of its forecaster and question.
    TooFewForecasts
        If no row can be ranked or, without `allow_rejected`, more than half of the rows are rejected.
    InvalidSetting
        For a setting out of range, or relative skill by a score that may be negative or of which higher is better.

    Examples
    --------
    >>> frame = pl.DataFrame({"forecaster": ["ann", "bob"] * 2, "question": [1, 1, 2, 2], "points": [3, 1, 2, 1]})
    >>> rank_scores(frame, higher="points", bootstrap=0).ranked("points")
    {'ann': (1, 2.5), 'bob': (2, 1.0)}
    """
    settings = Settings(metrics=("brier",), **options)
    better = dict.fromkeys(_names(lower), "lower") | dict.fromkeys(_names(higher), "higher")
    table = read_named_columns(source, (*KEY, *better), OPTIONAL)
    if not better:
        raise UnreadableFile(f"{table.label}: name at least one score, of {', '.join(table.frame.columns)}")
    reserved_names = RESERVED | ({"relative_skill"} if relative else set())
    if reserved := [name for name in better if name.strip().lower() in reserved_names]:
        raise UnreadableFile(
            f"{table.label}: no score can be called {', '.join(map(repr, reserved))}: rename the column"
        )
    columns = {*KEY, *OPTIONAL, *better}
    ignored = [name for name in table.frame.columns if name not in columns]
    weighted = ("weight",) if "weight" in table.frame.columns else ()
    rows = CheckedRows(table, (*better, *weighted))
    rows.check_numbers(better)
    rows.check_weight()
    labels = [name for name in ("event",) if name in table.frame.columns]
    rows.take_out_repeats([*KEY, *labels, "weight", *better])
    twice = "the forecaster's score on the question is stated twice, with other values"
    rows.reject(pl.struct(KEY).is_duplicated(), twice, fix="keep one of the rows")
    if strict:
        rows.check_none_rejected()
    lead = next(iter(better))
    if relative and (better[lead] != "lower" or (rows.frame[lead] < 0).any()):
        raise InvalidSetting(f"relative: {lead} is not a score of which lower is better and none is below 0")
    return score_report(
        rows, rows.frame, better, settings, ignored=ignored, allow_rejected=allow_rejected, relative=relative
    )


def score_report(
    rows: CheckedRows,
    scores: pl.DataFrame,
    better: dict[str, str],
    settings: Settings,
    *,
    limits: tuple[float, float] = UNLIMITED,
    shares: Sequence[str] = (),
    parts: Sequence[str] = (),
    notes: Sequence[str] = (),
    ignored: Sequence[str] = (),
    allow_rejected: bool = False,
    relative: bool = False,
) -> Report:
    """The report of checked scores.

    Parameters
    ----------
    rows : CheckedRows
    scores : polars.DataFrame
        A row for each forecast, with the columns of KEY, `weight`, the scores and optionally `event`.
    better : dict of str to str
        Whether "lower" or "higher" is better, by score.
    settings : Settings
    limits : (float, float)
        The range of the scores, where intervals end.
    shares : sequence of str
        Columns of 0 and 1 whose means are figures without a ranking.
    parts : sequence of str
        Columns that add up to the first score, whose means are figures alone.
    notes, ignored : sequence of str
    allow_rejected : bool

    Raises
    ------
    TooFewForecasts
        If no row is left or, without `allow_rejected`, more than half of the rows are rejected.
    """
    rejected = rows.rejected()
    check_rejected(len(scores), len(rows.lines), rejected, allow_rejected=allow_rejected)
    panel = score_panel(scores)
    scores = scores.sort("question", "forecaster")
    values = {
        name: scores[name].fill_null(float("nan")).to_numpy().astype(np.float64) for name in (*better, *shares, *parts)
    }
    names, forecaster_count = panel.forecasters, len(panel.forecasters)
    answered = np.bincount(panel.forecaster, minlength=forecaster_count)
    table = FigureTable(names, forecaster_count, answered, len(panel.questions.event_names), settings)
    table.set_figure("n", answered)
    table.set_figure("coverage", answered / max(len(panel.questions), 1))
    notes = list(notes)
    for name, direction in better.items():
        notes += _add_score(table, panel, name, values[name], lower=direction == "lower", limits=limits)
    for name in shares:
        table.add_share(name, event_sums(panel, values[name]))
    for name in parts:
        table.set_figure(name, panel.forecaster_means(values[name]))
    lead = next(iter(better))
    data: dict[str, Any] = {
        "rows": len(rows.lines), "forecasts": len(panel), "forecasters": forecaster_count,
        "questions": len(panel.questions), "events": len(panel.questions.event_names),
        "priced": 0, "overround": None, "rejected": len(rejected),
        "superseded": rows.superseded, "repeated": rows.repeated, "normalised": 0, "ignored_columns": list(ignored),
    }  # fmt: skip
    if relative:
        notes += add_relative_skill(table, panel, values[lead])
    pairs, note = compared_pairs(table, panel, values[lead], lead, lead)
    notes += note
    sections: dict[str, Any] = {"curves": {}, "pairs": pairs, "notes": notes, "models": {}, "questions": {}}
    headings = (lead, f"{ADJUSTED}{lead}")
    content = assemble_report(
        table, data, sections | {"agreement": agreement_table(table)}, headings, lower=better[lead] == "lower"
    )
    metadata = {
        **asdict(settings), "metrics": list(better), "gammas": [], "scores": better, "pairs_by": lead,
        "shares": list(shares), "parts": list(parts), "like": None,
    }  # fmt: skip
    return Report({"settings": metadata, **content, **rejections(rejected)})


def _add_score(
    table: FigureTable, panel: Panel, name: str, values: Floats, *, lower: bool, limits: tuple[float, float]
) -> list[str]:
    """Adds the ranking of a score and its adjusted one; returns notes."""
    sums = event_sums(panel, np.where(np.isinf(values), np.nan, values))
    ruined = np.bincount(panel.forecaster, np.isinf(values), len(panel.forecasters)) > 0
    table.add_mean(name, sums, ruined, lower=lower, key=name, limits=limits)
    if ruined.any():
        return [f"{ADJUSTED}{name}: none, for some scores are infinite"]
    fit = adjusted_brier(panel, values)
    table.set_figure(f"{ADJUSTED}{name}_se", fit.se)
    key = f"{ADJUSTED}{name}"
    table.add_estimate(key, fit.value, fit.sums, lower=lower, key=key, limits=limits)
    outside = [person for person, part in zip(panel.forecasters, fit.component.tolist(), strict=True) if part > 0]
    return [f"{ADJUSTED}{name}: no common question links {listed(outside)} to the others"] if outside else []


def score_panel(scores: pl.DataFrame) -> Panel:
    """The forecasts as a panel without probabilities, in order of the question, then of the forecaster."""
    event = pl.coalesce("event", "question") if "event" in scores.columns else pl.col("question")
    scores = scores.sort("question", "forecaster").with_columns(event.alias("event"))
    forecasters, questions, events = (scores[name].unique().sort() for name in ("forecaster", "question", "event"))
    forecaster = forecasters.search_sorted(scores["forecaster"]).to_numpy().astype(np.int64)
    question = questions.search_sorted(scores["question"]).to_numpy().astype(np.int64)
    first = scores.unique("question", keep="first", maintain_order=True)
    closed_at = np.full(len(questions), np.nan)
    if "closed_at" in scores.columns:
        times = scores.group_by("question", maintain_order=True).agg(pl.col("closed_at").drop_nulls().first())
        closed_at = times["closed_at"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    count, forecasts = len(questions), len(scores)
    undefined = np.full(forecasts, np.nan)
    return Panel(
        questions=Questions(
            offsets=np.arange(count + 1),
            outcome=np.full(count, np.nan),
            exclusive=np.zeros(count, dtype=bool),
            event=events.search_sorted(first["event"]).to_numpy().astype(np.int64),
            category=np.zeros(count, dtype=np.int64),
            closed_at=closed_at,
            names=questions.to_list(),
            option_names=[BINARY] * count,
            event_names=events.to_list(),
            category_names=[""],
        ),
        forecasters=forecasters.to_list(),
        forecaster=forecaster,
        question=question,
        offsets=np.arange(forecasts + 1),
        probability=undefined,
        odds=undefined,
        no_odds=undefined,
        weight=scores["weight"].to_numpy().astype(np.float64),
        made_at=undefined,
    )


def _names(names: Iterable[str] | str) -> list[str]:
    return [name.strip() for name in (names.split(",") if isinstance(names, str) else names) if name.strip()]
