"""Tables of sums of which a partial result consists: by forecaster and event, by option, and by pair and event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes
from forecast_rank.metrics.pair_sums import clustered_error, event_freedom, pair_sums
from forecast_rank.metrics.paired_tests import PairedComparisons, corrected_tests
from forecast_rank.metrics.panel import Panel, Questions
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.returns import average_return, log_wealth
from forecast_rank.metrics.skill import alpha
from forecast_rank.ranking.settings import Settings

OPTION_SUMS = ("probability", "odds", "no_odds", "mid", "forecasts", "priced", "quoted")
PAIR_KEY = ("first", "second", "event")


def rankings(settings: Settings) -> Iterator[tuple[str, str, bool, str | None]]:
    """Name, key, whether lower is better, and gamma of each ranking that the metrics give."""
    for name, lower in (("brier", True), ("log", False), ("spherical", False)):
        if name in settings.metrics:
            yield name, name, lower, None
    if {"brier", "log", "spherical"} & set(settings.metrics):
        yield "accuracy", "accuracy", False, None
    for gamma in settings.gammas if "average_return" in settings.metrics else ():
        yield f"average_return:{gamma}", "average_return", False, gamma
        yield f"log_wealth:{gamma}", "log_wealth", False, gamma
    if "alpha" in settings.metrics:
        yield "alpha", "alpha", False, None


def event_table(panel: Panel, settings: Settings) -> pl.DataFrame:
    """A row for each forecaster and event: questions, and for each ranking the sum, the weight and the ruins."""
    events = max(len(panel.questions.event_names), 1)
    codes, place = distinct_codes(panel.forecaster * events + panel.questions.event[panel.question])

    def total(values: Floats) -> Floats:
        return np.bincount(place, values, len(codes)).astype(np.float64)

    columns: dict[str, Any] = {
        "forecaster": pl.Series(panel.forecasters, dtype=pl.String).gather(codes // events),
        "event": pl.Series(panel.questions.event_names, dtype=pl.String).gather(codes % events),
        "n": total(np.ones(len(panel))),
    }
    for ranking, key, _, gamma in rankings(settings):
        values = _values(panel, key, gamma, settings.log_clip)
        is_known = ~np.isnan(values)
        columns[f"{ranking} sum"] = total(np.where(is_known & np.isfinite(values), values, 0.0) * panel.weight)
        columns[f"{ranking} weight"] = total(np.where(is_known, panel.weight, 0.0))
        columns[f"{ranking} ruins"] = total(np.isinf(values).astype(np.float64))
    return pl.DataFrame(columns)


def with_event_groups(panel: Panel, groups: int) -> Panel:
    """The panel with its events dealt into groups by a checksum of their names, alike in every part of the data."""
    names = panel.questions.event_names
    group = np.array([crc32(name.encode()) % groups for name in names], dtype=np.int64)
    labels = [f"group {k}" for k in range(groups)]
    event = group[panel.questions.event] if names else panel.questions.event
    return replace(panel, questions=replace(panel.questions, event=event, event_names=labels))


def _values(panel: Panel, key: str, gamma: str | None, log_clip: float) -> Floats:
    """The score of each forecast, (F,)."""
    if key == "log":
        return log_score(panel, log_clip)
    if gamma is not None:
        return {"average_return": average_return, "log_wealth": log_wealth}[key](panel, float(gamma))
    return {"brier": brier, "spherical": spherical, "accuracy": accuracy, "alpha": alpha}[key](panel)


def option_table(panel: Panel) -> pl.DataFrame:
    """A row for each option: sums over its forecasts, of which the references are means, and its outcome twice."""
    questions = panel.questions
    owner = np.repeat(np.arange(len(questions)), questions.sizes)
    priced, quoted = panel.spread(panel.priced), panel.spread(~np.isnan(panel.sum_cells(panel.mid)))
    weight = np.full(len(questions), np.inf)
    np.minimum.at(weight, panel.question, panel.weight)

    def total(values: Floats) -> Floats:
        return np.bincount(panel.cell_option, values, len(questions.outcome)).astype(np.float64)

    def text(names: list[str], codes: Codes) -> pl.Series:
        return pl.Series(names, dtype=pl.String).gather(codes)

    return pl.DataFrame(
        {
            "question": text(questions.names, owner),
            "option": pl.Series(questions.option_names, dtype=pl.String),
            "event": text(questions.event_names, questions.event[owner]),
            "exclusive": questions.exclusive[owner],
            "lowest_outcome": questions.outcome,
            "highest_outcome": questions.outcome,
            "probability": total(panel.probability),
            "odds": total(np.where(priced, panel.odds, 0.0)),
            "no_odds": total(np.where(priced, panel.no_odds, 0.0)),
            "mid": total(np.where(quoted, panel.mid, 0.0)),
            "forecasts": total(np.ones(len(panel.probability))),
            "priced": total(priced.astype(np.float64)),
            "quoted": total(quoted.astype(np.float64)),
            "weight": weight[owner],
        }
    )


def add_options(table: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The options of two parts. Raises UnreadableFile if the parts contradict each other about a question."""
    shared = table.select("question").unique().join(second.select("question").unique(), on="question")
    if not len(shared):
        return pl.concat([table, second])
    joined = (
        pl.concat([table, second])
        .group_by("question", "option")
        .agg(
            pl.col("event").first(),
            pl.col("exclusive").first(),
            pl.col("lowest_outcome").min(),
            pl.col("highest_outcome").max(),
            pl.col(OPTION_SUMS).sum(),
            pl.col("weight").min(),
        )
    )
    doubtful = joined.join(shared, on="question", how="semi")
    bad = pl.col("lowest_outcome").ne(pl.col("highest_outcome")).any() | (pl.col("forecasts").n_unique() > 1)
    if len(differing := doubtful.group_by("question").agg(bad.alias("bad")).filter("bad").sort("question")):
        raise UnreadableFile(
            f"parts contradict each other on the options or the outcome of {differing['question'][0]!r}"
        )
    return joined


def mean_panel(options: pl.DataFrame) -> Panel:
    """The mean forecast on each question as the panel of one forecaster, whose references are those of all."""
    options = options.sort("question", "option")
    starts = options.select(pl.col("question").rle_id()).to_series().to_numpy()
    offsets = np.append(np.flatnonzero(np.diff(starts, prepend=-1)), len(options)).astype(np.int64)
    heads = options[offsets[:-1].tolist()]
    events = heads["event"].unique().sort()
    column = {name: options[name].to_numpy().astype(np.float64) for name in OPTION_SUMS}
    odds, no_odds, mid = (
        np.divide(column[name], column[number], out=np.full(len(options), np.nan), where=column[number] > 0)
        for name, number in (("odds", "priced"), ("no_odds", "priced"), ("mid", "quoted"))
    )
    count = len(heads)
    return Panel(
        questions=Questions(
            offsets=offsets,
            outcome=options["lowest_outcome"].to_numpy(),
            exclusive=heads["exclusive"].to_numpy(),
            event=events.search_sorted(heads["event"]).to_numpy().astype(np.int64),
            category=np.zeros(count, dtype=np.int64),
            closed_at=np.full(count, np.nan),
            names=heads["question"].to_list(),
            option_names=options["option"].to_list(),
            event_names=events.to_list(),
            category_names=[""],
        ),
        forecasters=["mean"],
        forecaster=np.zeros(count, dtype=np.int64),
        question=np.arange(count),
        offsets=offsets,
        probability=column["probability"] / column["forecasts"],
        odds=odds,
        no_odds=no_odds,
        weight=heads["weight"].to_numpy(),
        made_at=np.full(count, np.nan),
        quote=mid,
    )


def pair_table(panel: Panel) -> pl.DataFrame:
    """A row for each pair of forecasters and event: common questions, and sums of Brier differences and weights."""
    sums = pair_sums(panel, brier(panel))
    names, events = (pl.Series(texts, dtype=pl.String) for texts in (panel.forecasters, panel.questions.event_names))
    return pl.DataFrame(
        {
            "first": names.gather(sums.first),
            "second": names.gather(sums.second),
            "event": events.gather(sums.event),
            "questions": sums.questions,
            "away": sums.away,
            "weight": sums.weight,
        }
    )


def tests_of_pairs(pairs: pl.DataFrame, names: list[str]) -> PairedComparisons:
    """The paired tests of forecasters in the order of their names, from the rows of `pair_table`."""
    means = pairs.group_by("first", "second").agg(
        pl.col("questions").sum(), pl.len().alias("events"), pl.col("away").sum(), pl.col("weight").sum()
    )
    means = means.with_columns((pl.col("away") / pl.col("weight")).alias("difference"))
    residual = pl.col("away") - pl.col("difference") * pl.col("weight")
    leverage = 1 - pl.col("weight") / pl.col("mass")
    squares = (
        pairs.join(means.select("first", "second", "difference", mass="weight"), on=("first", "second"))
        .group_by("first", "second")
        .agg(
            (residual / leverage).pow(2).sum().alias("squares"),
            pl.col("away").pow(2).sum().alias("size"),
            pl.col("weight").pow(2).sum().alias("heavy"),
        )
    )
    means = means.join(squares, on=("first", "second"))
    place = {name: k for k, name in enumerate(names)}
    count = len(names)
    numbers = {name: np.zeros(count * (count - 1) // 2) for name in ("questions", "events")}
    numbers |= {
        name: np.full(count * (count - 1) // 2, np.nan) for name in ("difference", "weight", "squares", "size", "heavy")
    }
    first = np.array([place[name] for name in means["first"]], dtype=np.int64)
    second = np.array([place[name] for name in means["second"]], dtype=np.int64)
    cell = first * count - first * (first + 1) // 2 + second - first - 1
    for name, column in numbers.items():
        column[cell] = means[name].to_numpy()
    se = clustered_error(numbers["squares"], numbers["size"], numbers["events"], numbers["weight"])
    freedom = event_freedom(numbers["weight"], numbers["heavy"])
    return corrected_tests(
        count, numbers["questions"], numbers["events"], numbers["difference"], se, numbers["weight"], freedom
    )
