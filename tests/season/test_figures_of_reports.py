"""Every figure of the pages by time, by cost and by release is the API's."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.markup import chart_data
from tests.season import formats
from tests.season.page_figures import Page
from tests.season.season_api import DATA, SeasonApi

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

NAME = ["Model"]


def _label(row: Mapping[str, Any]) -> str:
    low, high = row["days_from"], row["days_to"]
    return f"{low} and more" if high is None else f"{low} to {high}" if low else f"Under {high}"


def _heading(row: Mapping[str, Any]) -> str:
    return f"{_label(row)} {formats.plural(row['questions'], 'question')}, {formats.plural(row['events'], 'event')}"


def _figure(row: Any, key: str, write: Callable[[Any], str]) -> tuple[str, str]:
    return formats.with_interval(row, key, write, " to ") if row else ("–", "")


def _lines(page: Page, key: str) -> dict[str, list[float]]:
    """The values of each line of a chart, without gaps."""
    page.skip(f"{DATA}{key}")
    lines = {}
    for curve in chart_data(page.html, key)["curves"]:
        lines[curve["name"]] = [value for value in curve["values"] if value is not None]
    return lines


def test_scores_by_time(season: SeasonApi) -> None:
    page, answer = season.page("/time/"), season.one("time/")
    bins = answer["bins"]
    scores: dict[tuple[str], list[Any]] = {}
    for place, row in enumerate(bins):
        for entry in row["entries"]:
            if entry["reference"] and entry["forecaster"] not in ("market", "uniform", "ensemble"):
                continue
            scores.setdefault((entry["display_name"],), [None] * len(bins))[place] = entry
    assert scores
    for label, key, write in (("brier", "brier", formats.score), ("alpha", "alpha", formats.signed_score)):
        columns = {}
        for place, row in enumerate(bins):
            columns[_heading(row)] = lambda entries, i=place, k=key, form=write: _figure(entries[i], k, form)
        visible_rows = {name: row for name, row in scores.items() if key == "brier" or name != ("Market",)}
        page.table(label, visible_rows, columns, "Model", no_figure=NAME)
    for name, values in _lines(page, "by-days").items():
        entries = zip(bins, scores[name,], strict=True)
        drawn = [round(entry["brier"], 4) for row, entry in entries if entry and row["events"] >= 4]
        assert values == drawn, name
    page.assert_compared(at_least=40)


def test_scores_by_cost(season: SeasonApi) -> None:
    page, answer = season.page("/costs/"), season.one("costs/")
    names = {slug: name for name, slug in season.names.items()}
    columns = {
        "Score": lambda row: _figure(row, "score", formats.score),
        "Cost": lambda row: formats.cost(1000 * row["cost_usd"]),
        "Of it searches": lambda row: formats.cost(1000 * row["search_cost_usd"]),
        "Seconds": lambda row: formats.seconds(1000 * 1000 * row["seconds"]).removesuffix(" s"),
        "Prompt tokens": lambda row: formats.count(1000 * row["tokens_input"]),
        "Answer tokens": lambda row: formats.count(1000 * row["tokens_output"]),
        "Forecasts": lambda row: (
            formats.count(row["forecasts"]),
            f"{formats.count(row['without_cost'])} without a stated cost" if row["without_cost"] else "",
        ),
        "On the frontier": lambda row: "yes" if row["efficient"] else "no",
    }  # fmt: skip
    page.table(
        "answers", {(names[row["forecaster"]],): row for row in answer["rows"]}, columns, "Model", no_figure=NAME
    )
    of_step = {
        "From": lambda step: names[step["cheaper"]],
        "To": lambda step: names[step["better"]],
        "Lower score": lambda step: formats.score(step["gain"]),
        "Extra cost of 1,000 questions": lambda step: formats.cost(1000 * step["extra_usd"]),
        "For 0.01": lambda step: formats.cost(1000 * step["usd_per_point"]),
        "Corrected p": lambda step: formats.p_value(step["p_holm"]).replace("= ", ""),
    }
    if answer["steps"]:
        page.table("steps", answer["steps"], of_step)
    lines = _lines(page, "score-by-cost")
    frontier = sorted((row["score"] for row in answer["rows"] if row["efficient"]), reverse=True)
    assert lines.pop("Frontier") == [round(score, 4) for score in frontier]
    assert lines == {names[row["forecaster"]]: [round(row["score"], 4)] for row in answer["rows"]}
    page.assert_compared(at_least=40)
