"""Report tables as terminal text, Markdown or LaTeX."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

from forecast_rank.ranking.tables import ReportTable

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "±": r"$\pm$", "γ": r"$\gamma$",
}  # fmt: skip
_GAP = "  "
_MARKDOWN_SPECIAL = {letter: f"\\{letter}" for letter in "\\|*_`[]<>"}


def rich_table(table: ReportTable) -> Table:
    """The table for a rich console; the first rank is bold, references are dim."""
    from rich.table import Table
    from rich.text import Text

    table = table.shortened()
    grid = Table(box=None, pad_edge=False, header_style="")
    for place, heading in enumerate(table.header):
        grid.add_column(Text(heading), justify="left" if place in table.text_columns else "right")
    for row in table.rows:
        style = {"1": "bold", "": "dim"}.get(row[0], "") if table.header[0] == "#" else ""
        grid.add_row(*map(Text, row), style=style)
    return grid


def terminal_table(table: ReportTable, width: int = 120) -> str:
    """The table aligned for a terminal of `width` characters; the cells of one that is wider are folded."""
    from rich.cells import cell_len

    table = table.shortened()
    columns = list(zip(table.header, *table.rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return _folded_table(table, width)

    def padded(cell: str, place: int) -> str:
        blanks = " " * (widths[place] - cell_len(cell))
        return cell + blanks if place in table.text_columns else blanks + cell

    text = ""
    for row in (table.header, *table.rows):
        text += _GAP.join(map(padded, row, range(len(row)))) + "\n"
    return text


def _folded_table(table: ReportTable, width: int) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    console.print(rich_table(table))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def html_table(table: ReportTable) -> str:
    """The table in HTML with its title as the caption."""

    def cells(row: list[str], tag: str) -> str:
        aligned = ["left" if place in table.text_columns else "right" for place in range(len(row))]
        html = ""
        for side, cell in zip(aligned, row, strict=True):
            html += f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
        return html

    head = f"<thead><tr>{cells(table.header, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    caption = f'<caption style="text-align: left">{escape(table.title)}</caption>'
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def html_paragraph(text: str) -> str:
    """Lines of text as a paragraph."""
    return f"<p>{'<br>'.join(map(escape, text.strip().splitlines()))}</p>"


def markdown_table(table: ReportTable) -> str:
    """The table in GitHub's Markdown, without its title."""
    rule = ["---" if place in table.text_columns else "--:" for place in range(len(table.header))]
    special = str.maketrans(_MARKDOWN_SPECIAL)
    lines = []
    for row in (table.header, *table.rows):
        cells = [cell.translate(special) for cell in row]
        lines.append(f"| {' | '.join(cells)} |\n")
    lines.insert(1, f"| {' | '.join(rule)} |\n")
    return "".join(lines)


def latex_table(table: ReportTable) -> str:
    """The table as a `tabular` with the rules of booktabs, without its title."""
    special = str.maketrans(_LATEX_SPECIAL)
    columns = "".join("l" if place in table.text_columns else "r" for place in range(len(table.header)))
    lines = []
    for row in (table.header, *table.rows):
        cells = [cell.translate(special) for cell in row]
        lines.append(" & ".join(cells) + r" \\")
    start = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule"]
    return "\n".join([*start, *lines[1:], r"\bottomrule", r"\end{tabular}", ""])
