"""Pictures of a report: reliability, return curves, scores, pairs, rank ranges, agreement, ability against difficulty.

Matplotlib is imported with this module, which is imported only to draw.
"""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from forecast_rank.atomic_files import atomic_write
from forecast_rank.ranking import curve_plots, ranking_plots
from forecast_rank.ranking.plot_style import STYLE, Report

MARGIN, TITLE_PASSES = 6, 4
"""Pixels between a title and the edge, and how often titles are measured."""

Progress = Callable[[int, int, str], None]

PICTURES: dict[str, Callable[[Report], Iterator[tuple[str, Figure]]]] = {
    "reliability": curve_plots.reliability,
    "average_return": curve_plots.returns,
    "scores": ranking_plots.scores,
    "pairs": ranking_plots.pairs,
    "ranks": ranking_plots.ranks,
    "agreement": ranking_plots.agreement,
    "ability": ranking_plots.ability,
}


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
