"""Pictures of a report: reliability, return curves, scores, pairs, rank ranges, agreement, ability against difficulty.

Matplotlib is imported with this module, which is imported only to draw.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from forecast_rank.atomic_files import atomic_write
from forecast_rank.ranking.names import distinct_names
from forecast_rank.reports import FIGURES

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F5A2E")
"""Okabe and Ito's palette, which readers with colour-blindness can tell apart, its yellow made dark enough to see."""
DASHES = {"market": (0, (5, 1.5)), "uniform": (0, (1, 1.5)), "ensemble": (0, (4, 1.5, 1, 1.5))}
GREY, DARK = "#b5b5b5", "#404040"
LINES_SHOWN = len(COLOURS)
RELIABILITY_SHOWN, PAIRS_SHOWN, BANDS_SHOWN = 12, 30, 3
SIGNIFICANCE = 0.05
MARGIN, TITLE_PASSES = 6, 4
"""Pixels between a title and the edge, and how often titles are measured."""
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "forecaster-arena",
    "svg.fonttype": "none",
}

LABELS = {
    "brier": "Brier score",
    "log": "log score",
    "spherical": "spherical score",
    "calibration": "calibration error",
    "adjusted_brier": "adjusted Brier",
    "weighted_brier": "weighted Brier",
    "thurstone_mosteller": "Thurstone–Mosteller",
    "bradley_terry": "Bradley–Terry (wins)",
    "irt": "IRT ability",
}
"""Rankings in words, where their name is another."""

Report = dict[str, Any]
Progress = Callable[[int, int, str], None]


def draw(
    report: Report, folder: Path, format: str = "svg", progress: Progress = lambda count, of, caption: None
) -> list[Path]:
    """Draws the pictures that the report has figures for into `folder`, as svg or png; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    with plt.rc_context(STYLE):
        for count, (name, picture) in enumerate(PICTURES.items()):
            progress(count, len(PICTURES), name.replace("_", " "))
            for suffix, figure in picture(report):
                _wrap_titles(figure)
                file = folder / f"{name}{suffix}.{format}"
                with atomic_write(file) as draft:
                    figure.savefig(draft, dpi=150, metadata={"Date": None} if format == "svg" else None)
                plt.close(figure)
                files.append(file)
    return files


def axes_of(report: Report, picture: str, suffix: str = "") -> np.ndarray:
    """The axes of one picture, on a figure that pyplot shows. Raises ValueError if the report has no figures for it."""
    with plt.rc_context(STYLE):
        for name_of_figure, figure in PICTURES[picture](report):
            if name_of_figure == suffix:
                _wrap_titles(figure)
                return np.array([axes for axes in figure.axes if axes.get_visible()], dtype=object)
            plt.close(figure)
    raise ValueError(f"the report has no figures for {picture}{suffix}")


def _wrap_titles(figure: Figure) -> None:
    """Breaks titles into lines that end before what stands beside them and before the edge of the figure.

    A title of more lines makes its axes smaller, and may move it: the titles are measured again.
    """
    for _ in range(TITLE_PASSES):
        figure.draw_without_rendering()  # constrained layout places the axes when it draws
        wrapped = [_wrap(title, room) for title, room in list(_titles(figure))]
        if not any(wrapped):
            return


def _titles(figure: Figure) -> Iterator[tuple[Any, float]]:
    """Each title with the room, in pixels, that it has from where it begins."""
    if (title := figure._suptitle) is not None:  # type: ignore[attr-defined]
        yield title, figure.bbox.width - 2 * MARGIN
    boxes = {axes: axes.get_tightbbox() for axes in figure.axes if axes.get_visible()}
    for axes in boxes:
        title = axes._left_title  # type: ignore[attr-defined]
        box = title.get_window_extent()
        edges = [figure.bbox.width]
        for rival, beside in boxes.items():
            if rival is axes or beside is None or beside.x0 <= box.x0:
                continue
            if beside.y0 < box.y1 and box.y0 < beside.y1:
                edges.append(beside.x0)
        yield title, min(edges) - MARGIN - box.x0


def _wrap(title: Any, room: float) -> bool:
    """Breaks a title that is wider than its room; whether it was."""
    width = title.get_window_extent().width
    lines = title.get_text().splitlines()
    if not lines or width <= room:
        return False
    letters = int(max(map(len, lines)) * room / width)
    title.set_text("\n".join(textwrap.wrap(" ".join(lines), max(8, letters))))
    return True


def reliability(report: Report) -> Iterator[tuple[str, Figure]]:
    """A reliability diagram for each forecaster, the best Brier score first."""
    curves = report["curves"].get("reliability")
    if not curves or not curves["forecasters"]:
        return
    order = report["rankings"].get("brier") or report["rankings"].get("calibration") or list(curves["forecasters"])
    lines = [(name, curves["forecasters"][name]) for name in order[:RELIABILITY_SHOWN]]
    lines += [(f"({name})", bins) for name, bins in curves["references"].items() if bins]
    labels = _labels((name for name, _ in lines), 48)
    across = min(5, len(lines))
    down = math.ceil(len(lines) / across)
    figure, axes = plt.subplots(
        down, across, figsize=(2.3 * across + 0.5, 2.45 * down + 0.5), sharex=True, sharey=True, squeeze=False
    )
    for axis, (name, bins) in zip(axes.flat, lines, strict=False):
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        centre = [b["forecast"] for b in bins]
        rate = [b["outcome"] for b in bins]
        below = [max(b["outcome"] - b["low"], 0) for b in bins]
        above = [max(b["high"] - b["outcome"], 0) for b in bins]
        colour = DARK if name.startswith("(") else COLOURS[0]
        axis.bar(
            [b["from"] for b in bins],
            [b["weight"] for b in bins],
            [b["to"] - b["from"] for b in bins],
            align="edge",
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        axis.errorbar(centre, rate, [below, above], color=colour, marker="o", markersize=3, linewidth=1, capsize=1.5)
        entry = report["references"][name[1:-1]] if name.startswith("(") else report["forecasters"][name]
        note = "" if entry.get("ece") is None else f"  ECE {entry['ece']:z.3f}"
        axis.set_title(f"{labels[name]}{note}", fontsize=8)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    _hide(axes, len(lines))
    more = len(curves["forecasters"]) - RELIABILITY_SHOWN
    tail = f"; the best {RELIABILITY_SHOWN} of {len(curves['forecasters'])}" if more > 0 else ""
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
        labels = _labels(order[:LINES_SHOWN], 24)
        questions_closed = np.array(curve["questions"])
        axis.axhline(1, color=GREY, linewidth=0.8, zorder=0)
        for name in order[LINES_SHOWN:]:
            axis.plot(
                questions_closed, _line(curve["forecasters"][name]), color=GREY, linewidth=0.6, alpha=0.6, zorder=1
            )
        for place, name in reversed(list(enumerate(order[:LINES_SHOWN]))):
            final = report["forecasters"][name]["average_return"][gamma]
            label = f"{labels[name]}  {final:z.3f}" if final is not None else labels[name]
            axis.plot(
                questions_closed, _line(curve["forecasters"][name]), color=COLOURS[place], linewidth=1.4, label=label
            )
            if place < BANDS_SHOWN and name in curve.get("bands", {}):
                low, high = map(_line, curve["bands"][name])
                axis.fill_between(questions_closed, low, high, color=COLOURS[place], alpha=0.08, linewidth=0)
        for name, values in curve["references"].items():
            final = report["references"][name]["average_return"][gamma]
            if final is not None:
                label = f"({name})  {final:z.3f}"
                axis.plot(questions_closed, _line(values), color=DARK, linewidth=1, linestyle=DASHES[name], label=label)
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
    lines = [_line(values) for values in (*curve["forecasters"].values(), *curve["references"].values())]
    late = np.concatenate([line[questions_closed >= questions_closed[-1] / 10] for line in lines])
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
        axis.set_title(_titled(ranking), fontsize=8)
        axis.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set(xlim=(0.5, len(order) + 0.5), ylim=(0.3, len(order) + 0.7))
        axis.set_yticks(list(rows.values()), list(_labels(rows).values()), fontsize=7)
        axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
    _hide(axes, len(names))
    level = f"{report['settings']['level']:.0%}"
    figure.suptitle(f"Ranks (dot) and {level} rank ranges (bar), which hold for all forecasters together")
    figure.supxlabel("rank, 1 is the best")
    yield "", figure


def _hide(axes: np.ndarray, is_used: int) -> None:
    """Hides unused axes; those above them then show the scale."""
    for number, axis in enumerate(axes.flat):
        axis.set_visible(number < is_used)
        axis.tick_params(labelbottom=number + axes.shape[1] >= is_used)


def _has_ranges(report: Report, ranking: str) -> bool:
    entries = report["forecasters"].values()
    return any(entry.get("rank_ranges", {}).get(ranking) is not None for entry in entries)


def agreement(report: Report) -> Iterator[tuple[str, Figure]]:
    """Spearman's rho below the diagonal and Kendall's tau-b above it, ranking by ranking."""
    rho, tau = report["agreement"]["spearman"], report["agreement"]["kendall"]
    names = list(rho)
    if len(names) < 2:
        return
    grid = np.array(
        [[(rho if i > j else tau)[row][column] for j, column in enumerate(names)] for i, row in enumerate(names)],
        dtype=np.float64,
    )
    if np.isnan(grid).all():
        return
    np.fill_diagonal(grid, np.nan)
    size = 0.52 * len(names) + 2
    figure, axis = plt.subplots(figsize=(size + 0.8, size))
    image = axis.imshow(grid, cmap="PuOr", vmin=-1, vmax=1)
    for i, j in np.argwhere(np.isfinite(grid)):
        colour = "white" if abs(grid[i, j]) > 0.55 else "black"
        axis.text(j, i, f"{grid[i, j]:z.2f}".replace("-", "−"), ha="center", va="center", fontsize=7, color=colour)
    labels = [_titled(name) for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), labels)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title("Agreement of rankings: Spearman's ρ below, Kendall's τ-b above")
    figure.colorbar(image, ax=axis, shrink=0.6)
    yield "", figure


def ability(report: Report) -> Iterator[tuple[str, Figure]]:
    """Abilities of the forecasters above the difficulties of the questions, on one scale."""
    entries = {name: entry for name, entry in report["forecasters"].items() if entry.get("irt_ability") is not None}
    difficulty = [entry["difficulty"] for entry in report.get("questions", {}).values()]
    hard = np.array([value for value in difficulty if value is not None], dtype=np.float64)
    if not entries or not len(hard):
        return
    order = sorted(entries, key=lambda name: entries[name]["irt_ability"])
    tall = max(0.17 * len(order), 1.2)
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7, tall + 2.4), sharex=True, height_ratios=[tall, 1.6], squeeze=True
    )
    level = report["settings"]["level"]
    for row, name in enumerate(order):
        entry = entries[name]
        ends = entry.get("irt_ability_ci")
        if ends and None not in ends:
            above.plot(ends, [row, row], color=COLOURS[5], linewidth=3, solid_capstyle="butt")
        above.plot(entry["irt_ability"], row, "o", color=COLOURS[0], markersize=3.5)
    above.set_yticks(range(len(order)), list(_labels(order).values()), fontsize=7)
    above.grid(axis="x", color="#e6e6e6", linewidth=0.6)
    above.set_axisbelow(True)
    above.set_ylim(-0.7, len(order) - 0.3)
    drawn = any(None not in (entry.get("irt_ability_ci") or [None]) for entry in entries.values())
    above.set_title(f"Ability of forecasters, {f'{level:.0%}' if drawn else 'without'} intervals")
    # The forecasters set the scale: a question that nobody could miss may lie many deviations away.
    is_known = [entries[name]["irt_ability"] for name in order]
    is_known += [end for name in order for end in entries[name].get("irt_ability_ci") or () if end is not None]
    margin = 0.25 * (max(is_known) - min(is_known)) + 0.1
    low, high = min(is_known) - margin, max(is_known) + margin
    outside = float(np.mean((hard < low) | (hard > high)))
    below.hist(np.clip(hard, low, high), bins=int(np.clip(2 * len(hard) ** 0.5, 10, 60)), color=COLOURS[1], alpha=0.8)
    below.set_title("Difficulty of questions" + (f" ({outside:.0%} beyond, drawn at the edges)" if outside else ""))
    below.set(
        xlabel="one scale, in standard deviations of ability: at its difficulty a question is answered half well",
        ylabel="questions",
    )
    yield "", figure


def _titled(ranking: str) -> str:
    name, _, gamma = ranking.partition(":")
    label = LABELS.get(name, name.replace("_", " "))
    return f"{label}, γ = {gamma}" if gamma else label


def _line(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _labels(names: Iterable[str], width: int = 20) -> dict[str, str]:
    """The names as they can be drawn: on one line, shortened so that they differ, without formulas."""
    return {name: short.replace("$", r"\$") for name, short in distinct_names(names, width).items()}


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
        axis.set_yticks(range(len(order)), list(_labels(reversed(order)).values()), fontsize=7)
        axis.set_ylim(-0.7, len(order) - 0.3)
        axis.set(xlabel=_titled(ranking))
        drawn = f"{report['settings']['level']:.0%} intervals" if intervals else "without intervals"
        axis.set_title(f"{_titled(ranking)}, {drawn}, the best on top")
        yield f"_{ranking.replace(':', '_')}", figure


def pairs(report: Report) -> Iterator[tuple[str, Figure]]:
    """Differences in the score of every two forecasters on common questions, row less column."""
    order = report["rankings"].get(report["settings"].get("pairs_by", "brier"), [])[:PAIRS_SHOWN]
    place = {name: k for k, name in enumerate(order)}
    points = [
        pair for pair in report["pairs"]
        if pair["difference"] is not None and pair["first"] in place and pair["second"] in place
    ]  # fmt: skip
    if not points:
        return
    grid = np.full((len(order), len(order)), np.nan)
    for pair in points:
        i, j = place[pair["first"]], place[pair["second"]]
        grid[i, j], grid[j, i] = pair["difference"], -pair["difference"]
    size = 0.34 * len(order) + 2.2
    figure, axis = plt.subplots(figsize=(max(size + 0.9, 4.8), size))
    reach = np.nanmax(np.abs(grid)) or 1.0
    image = axis.imshow(grid, cmap="PuOr_r", vmin=-reach, vmax=reach)
    for pair in points:
        if pair["p_holm"] is not None and pair["p_holm"] < SIGNIFICANCE:
            i, j = place[pair["first"]], place[pair["second"]]
            for row, column in ((i, j), (j, i)):
                axis.text(column, row, "●", ha="center", va="center", fontsize=6, color="black")
    labels = list(_labels(order).values())
    axis.set_xticks(range(len(order)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    axis.set_yticks(range(len(order)), labels, fontsize=7)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    score = report["settings"].get("pairs_by", "Brier score")
    figure.suptitle(f"{score} of the row less that of the column, common questions; ● significant after Holm")
    figure.colorbar(image, ax=axis, shrink=0.6)
    yield "", figure


PICTURES: dict[str, Callable[[Report], Iterator[tuple[str, Figure]]]] = {
    "reliability": reliability,
    "average_return": returns,
    "scores": scores,
    "pairs": pairs,
    "ranks": ranks,
    "agreement": agreement,
    "ability": ability,
}
