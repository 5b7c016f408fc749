"""Pictures of curves: reliability, returns in order of closing."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from forecast_rank.ranking.plot_style import (
    COLOURS,
    DARK,
    DASHES,
    GREY,
    LINES_SHOWN,
    PANELS_SHOWN,
    Report,
    drawn_names,
    hide_unused,
    line_values,
)

BANDS_SHOWN = 3
BIN_FIGURES = ("forecast", "outcome", "low", "high", "from", "to", "weight")


def reliability(report: Report) -> Iterator[tuple[str, Figure]]:
    """A reliability diagram for each forecaster, the best Brier score first."""
    curves = report["curves"].get("reliability")
    if not curves or not curves["forecasters"]:
        return
    order = report["rankings"].get("brier") or report["rankings"].get("calibration") or list(curves["forecasters"])
    lines, entries = {}, {}
    for name in order[:PANELS_SHOWN]:
        lines[name], entries[name] = curves["forecasters"][name], report["forecasters"][name]
    for name, bins in curves["references"].items():
        if bins:
            lines[f"({name})"], entries[f"({name})"] = bins, report["references"][name]
    labels = drawn_names(lines, 48)
    across = min(5, len(lines))
    down = math.ceil(len(lines) / across)
    figure, axes = plt.subplots(
        down, across, figsize=(2.3 * across + 0.5, 2.45 * down + 0.5), sharex=True, sharey=True, squeeze=False
    )
    for axis, (name, bins) in zip(axes.flat, lines.items(), strict=False):
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        column = {key: np.array([b[key] for b in bins], dtype=np.float64) for key in BIN_FIGURES}
        rate = column["outcome"]
        reach = [np.maximum(rate - column["low"], 0), np.maximum(column["high"] - rate, 0)]
        colour = DARK if name.startswith("(") else COLOURS[0]
        widths = column["to"] - column["from"]
        axis.bar(column["from"], column["weight"], widths, align="edge", color=colour, alpha=0.15, linewidth=0)
        style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3, "linewidth": 1, "capsize": 1.5}
        axis.errorbar(column["forecast"], rate, reach, **style)
        entry = entries[name]
        note = "" if entry.get("ece") is None else f"  ECE {entry['ece']:z.3f}"
        axis.set_title(f"{labels[name]}{note}", fontsize=8)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    hide_unused(axes, len(lines))
    more = len(curves["forecasters"]) - PANELS_SHOWN
    tail = f"; the best {PANELS_SHOWN} of {len(curves['forecasters'])}" if more > 0 else ""
    figure.suptitle(f"Reliability, {report['settings']['level']:.0%} Wilson intervals; bars: share of forecasts{tail}")
    figure.supxlabel("forecast")
    figure.supylabel("happened")
    yield "", figure


def returns(report: Report) -> Iterator[tuple[str, Figure]]:
    """The running averaged return in order of closing, a picture for each risk aversion."""
    for gamma, curve in report["curves"].get("average_return", {}).items():
        order = report["rankings"].get(f"average_return:{gamma}", [])
        if not order or not curve["questions"]:
            continue
        figure, axis = plt.subplots(figsize=(8, 4.5))
        labels = drawn_names(order[:LINES_SHOWN], 24)
        questions_closed = np.array(curve["questions"])
        axis.axhline(1, color=GREY, linewidth=0.8, zorder=0)
        for name in order[LINES_SHOWN:]:
            axis.plot(
                questions_closed,
                line_values(curve["forecasters"][name]),
                color=GREY,
                linewidth=0.6,
                alpha=0.6,
                zorder=1,
            )
        for place, name in reversed(list(enumerate(order[:LINES_SHOWN]))):
            final = report["forecasters"][name]["average_return"][gamma]
            label = f"{labels[name]}  {final:z.3f}" if final is not None else labels[name]
            axis.plot(
                questions_closed,
                line_values(curve["forecasters"][name]),
                color=COLOURS[place],
                linewidth=1.4,
                label=label,
            )
            if place < BANDS_SHOWN and name in curve.get("bands", {}):
                low, high = map(line_values, curve["bands"][name])
                axis.fill_between(questions_closed, low, high, color=COLOURS[place], alpha=0.08, linewidth=0)
        for name, values in curve["references"].items():
            final = report["references"][name]["average_return"][gamma]
            if final is not None:
                label = f"({name})  {final:z.3f}"
                axis.plot(
                    questions_closed, line_values(values), color=DARK, linewidth=1, linestyle=DASHES[name], label=label
                )
        _bounded(axis, curve, questions_closed)
        handles, entries = axis.get_legend_handles_labels()
        best = min(LINES_SHOWN, len(order))
        axis.legend(
            handles[best - 1 :: -1] + handles[best:],
            entries[best - 1 :: -1] + entries[best:],
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            frameon=False,
        )
        more = f"; the best {LINES_SHOWN} of {len(order)} in colour" if len(order) > LINES_SHOWN else ""
        level, banded = report["settings"]["level"], min(BANDS_SHOWN, best)
        bands = f"\n{level:.0%} intervals of the best {banded}, each for its own time" if "bands" in curve else ""
        axis.set_title(f"Averaged return per dollar, gross, at risk aversion {gamma}{more}{bands}")
        axis.set(xlabel=_closing(curve), ylabel="mean payoff so far", xlim=(0, questions_closed[-1]))
        yield f"_{gamma}", figure


def _bounded(axis: Any, curve: Report, questions_closed: np.ndarray) -> None:
    """Limits the vertical axis to the last 90 % of the curves: the first few questions would dominate it."""
    is_late = questions_closed >= questions_closed[-1] / 10
    parts = []
    for values in (*curve["forecasters"].values(), *curve["references"].values()):
        parts.append(line_values(values)[is_late])
    late = np.concatenate(parts)
    late = late[np.isfinite(late)]
    if len(late):
        low, high = min(late.min(), 1), max(late.max(), 1)
        edge = 0.08 * (high - low) or 0.1
        axis.set_ylim(low - edge, high + edge)


def _closing(curve: Report) -> str:
    times = [at for at in curve["closed_at"] if at is not None]
    if not times:
        return "questions closed"
    first, last = (datetime.fromtimestamp(at, UTC).date().isoformat() for at in (min(times), max(times)))
    return f"questions closed, {first} to {last}"
