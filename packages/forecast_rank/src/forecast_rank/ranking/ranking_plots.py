"""Pictures of rankings: figures with intervals, rank ranges, pairs, agreement, ability against difficulty."""

import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from forecast_rank.ranking.plot_style import (
    COLOURS,
    DARK,
    DASHES,
    Report,
    drawn_names,
    hide_unused,
    ranking_title,
)
from forecast_rank.ranking.scores import FIGURES

PAIRS_SHOWN = 30
SIGNIFICANCE = 0.05


def scores(report: Report) -> Iterator[tuple[str, Figure]]:
    """A forest plot for each ranking: figures, their intervals if there are any, and the references as lines."""
    for ranking in report["rankings"]:
        key, _, under = ranking.partition(":")
        key = FIGURES.get(key, key)

        def figure_of(entry: Report, name: str, key: str = key, under: str = under) -> Any:
            value = entry.get(name)
            return value.get(under) if under and isinstance(value, dict) else value

        entries = report["forecasters"]
        order = [name for name in report["rankings"][ranking] if figure_of(entries[name], key) is not None]
        intervals = any(figure_of(entries[name], f"{key}_ci") for name in order)
        if not intervals and len(order) < 2:
            continue
        figure, axis = plt.subplots(figsize=(6.5, 0.19 * len(order) + 1.3))
        for row, name in enumerate(reversed(order)):
            ends = figure_of(entries[name], f"{key}_ci")
            if ends and None not in ends:
                axis.plot(ends, [row, row], color=COLOURS[5], linewidth=3, solid_capstyle="butt")
            axis.plot(figure_of(entries[name], key), row, "o", color=COLOURS[0], markersize=3.5)
        for name, entry in report["references"].items():
            value = figure_of(entry, key)
            if value is not None:
                axis.axvline(value, color=DARK, linewidth=1, linestyle=DASHES[name], label=f"({name})", zorder=0)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        axis.set_yticks(range(len(order)), list(drawn_names(reversed(order)).values()), fontsize=7)
        axis.set_ylim(-0.7, len(order) - 0.3)
        axis.set(xlabel=ranking_title(ranking))
        drawn = f"{report['settings']['level']:.0%} intervals" if intervals else "without intervals"
        axis.set_title(f"{ranking_title(ranking)}, {drawn}, the best on top")
        yield f"_{ranking.replace(':', '_')}", figure


def pairs(report: Report) -> Iterator[tuple[str, Figure]]:
    """Differences in the score of every two forecasters on common questions, row less column."""
    order = report["rankings"].get("brier", [])[:PAIRS_SHOWN]
    place = {name: k for k, name in enumerate(order)}
    grid = np.full((len(order), len(order)), np.nan)
    marked: list[tuple[int, int]] = []
    for pair in report["pairs"]:
        i, j = place.get(pair["first"]), place.get(pair["second"])
        if pair["difference"] is None or i is None or j is None:
            continue
        grid[i, j], grid[j, i] = pair["difference"], -pair["difference"]
        if pair["p_holm"] is not None and pair["p_holm"] < SIGNIFICANCE:
            marked += [(i, j), (j, i)]
    if np.isnan(grid).all():
        return
    size = 0.34 * len(order) + 2.2
    figure, axis = plt.subplots(figsize=(max(size + 0.9, 4.8), size))
    reach = np.nanmax(np.abs(grid)) or 1.0
    image = axis.imshow(grid, cmap="PuOr_r", vmin=-reach, vmax=reach)
    for row, column in marked:
        axis.text(column, row, "●", ha="center", va="center", fontsize=6, color="black")
    labels = list(drawn_names(order).values())
    axis.set_xticks(range(len(order)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    axis.set_yticks(range(len(order)), labels, fontsize=7)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    figure.suptitle("Brier score of the row less that of the column, common questions; ● significant after Holm")
    figure.colorbar(image, ax=axis, shrink=0.6)
    yield "", figure


def ranks(report: Report) -> Iterator[tuple[str, Figure]]:
    """Rank and rank range of each forecaster, side by side for every ranking."""
    names = [name for name in report["rankings"] if _has_ranges(report, name)]
    if not names:
        return
    order = report["rankings"].get("brier") or report["rankings"][names[0]]
    across = min(len(names), 5)
    down = math.ceil(len(names) / across)
    tall = 0.17 * len(order) + 0.9
    figure, axes = plt.subplots(
        down, across, figsize=(1.75 * across + 1.6, tall * down + 0.4), sharex=True, sharey=True, squeeze=False
    )
    rows = {name: len(order) - place for place, name in enumerate(order)}
    for axis, ranking in zip(axes.flat, names, strict=False):
        for place, name in enumerate(report["rankings"][ranking], start=1):
            span = report["forecasters"][name]["rank_ranges"].get(ranking)
            if span is not None:
                axis.plot(span, [rows[name]] * 2, color=COLOURS[5], linewidth=3, solid_capstyle="butt")
                axis.plot(place, rows[name], "o", color=COLOURS[0], markersize=3)
        axis.set_title(ranking_title(ranking), fontsize=8)
        axis.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set(xlim=(0.5, len(order) + 0.5), ylim=(0.3, len(order) + 0.7))
        axis.set_yticks(list(rows.values()), list(drawn_names(rows).values()), fontsize=7)
        axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
    hide_unused(axes, len(names))
    level = f"{report['settings']['level']:.0%}"
    figure.suptitle(f"Ranks (dot) and {level} rank ranges (bar), which hold for all forecasters together")
    figure.supxlabel("rank, 1 is the best")
    yield "", figure


def _has_ranges(report: Report, ranking: str) -> bool:
    entries = report["forecasters"].values()
    return any(entry.get("rank_ranges", {}).get(ranking) is not None for entry in entries)


def agreement(report: Report) -> Iterator[tuple[str, Figure]]:
    """Spearman's rho below the diagonal and Kendall's tau-b above it, ranking by ranking."""
    rho, tau = report["agreement"]["spearman"], report["agreement"]["kendall"]
    names = list(rho)
    if len(names) < 2:
        return
    grid = np.full((len(names), len(names)), np.nan)
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            grid[i, j] = (rho if i > j else tau)[row][column]  # None is NaN
    if np.isnan(grid).all():
        return
    np.fill_diagonal(grid, np.nan)
    size = 0.52 * len(names) + 2
    figure, axis = plt.subplots(figsize=(size + 0.8, size))
    image = axis.imshow(grid, cmap="PuOr", vmin=-1, vmax=1)
    for i, j in np.argwhere(np.isfinite(grid)):
        colour = "white" if abs(grid[i, j]) > 0.55 else "black"
        axis.text(j, i, f"{grid[i, j]:z.2f}".replace("-", "−"), ha="center", va="center", fontsize=7, color=colour)
    labels = list(map(ranking_title, names))
    axis.set_xticks(range(len(names)), labels, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), labels)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title("Agreement of rankings: Spearman's ρ below, Kendall's τ-b above")
    figure.colorbar(image, ax=axis, shrink=0.6)
    yield "", figure


def ability(report: Report) -> Iterator[tuple[str, Figure]]:
    """Abilities of the forecasters above the difficulties of the questions, on one scale."""
    entries = report["forecasters"]
    abilities: dict[str, float] = {}
    for name, entry in entries.items():
        if entry.get("irt_ability") is not None:
            abilities[name] = entry["irt_ability"]
    difficulty = [entry["difficulty"] for entry in report.get("questions", {}).values()]
    hard = np.array(difficulty, dtype=np.float64)  # None is NaN
    hard = hard[np.isfinite(hard)]
    if not abilities or not len(hard):
        return
    order = sorted(abilities, key=abilities.__getitem__)
    tall = max(0.17 * len(order), 1.2)
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7, tall + 2.4), sharex=True, height_ratios=[tall, 1.6], squeeze=True
    )
    level = report["settings"]["level"]
    figures, has_interval = list(abilities.values()), False
    for row, name in enumerate(order):
        ends = entries[name].get("irt_ability_ci") or [None, None]
        figures += [end for end in ends if end is not None]
        if None not in ends:
            has_interval = True
            above.plot(ends, [row, row], color=COLOURS[5], linewidth=3, solid_capstyle="butt")
        above.plot(abilities[name], row, "o", color=COLOURS[0], markersize=3.5)
    above.set_yticks(range(len(order)), list(drawn_names(order).values()), fontsize=7)
    above.grid(axis="x", color="#e6e6e6", linewidth=0.6)
    above.set_axisbelow(True)
    above.set_ylim(-0.7, len(order) - 0.3)
    above.set_title(f"Ability of forecasters, {f'{level:.0%}' if has_interval else 'without'} intervals")
    # The forecasters set the scale: a question that nobody could miss may lie many deviations away.
    margin = 0.25 * (max(figures) - min(figures)) + 0.1
    low, high = min(figures) - margin, max(figures) + margin
    outside = float(np.mean((hard < low) | (hard > high)))
    below.hist(np.clip(hard, low, high), bins=int(np.clip(2 * len(hard) ** 0.5, 10, 60)), color=COLOURS[1], alpha=0.8)
    below.set_title("Difficulty of questions" + (f" ({outside:.0%} beyond, drawn at the edges)" if outside else ""))
    below.set(
        xlabel="one scale, in standard deviations of ability: at its difficulty a question is answered half well",
        ylabel="questions",
    )
    yield "", figure
