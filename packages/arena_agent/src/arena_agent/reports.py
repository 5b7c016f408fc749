"""The report of an evaluation, which prints as a table and shows as HTML in a notebook."""

import io
from collections.abc import Iterator
from html import escape
from typing import Any

WIDTH = 116
"""Characters of the table."""
HEADINGS = ("forecaster", "n", "coverage", "Brier", "95 % interval", "alpha", "95 % interval", "adjusted Brier")
CAPTION = "Brier: lower is better. Alpha, the market's Brier score less the forecaster's: higher is better."


class EvaluationReport(dict[str, Any]):
    """The figures of `report.json` by name."""

    @property
    def title(self) -> str:
        """What the table shows."""
        condition = f", prompt condition {self['condition']}" if self["condition"] else ""
        return f"{self['agent']} beside the models on the same questions{condition}"

    def to_dict(self) -> dict[str, Any]:
        """The figures as a plain dictionary."""
        return dict(self)

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Each forecaster's key and its row of the table, the best Brier score first."""
        names = self["names"] | {name: f"({name})" for name in self["references"]}
        everyone = {self["agent"]: self} | self["forecasters"] | self["references"]
        for key in sorted(everyone, key=lambda name: (everyone[name]["brier"] is None, everyone[name]["brier"])):
            row = everyone[key]
            figures = ("coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier")
            yield key, [str(names.get(key, key)), f"{row['n']:g}", *(_figure(row[name]) for name in figures)]

    def notes(self) -> list[str]:
        """The sentences below the table."""
        notes = []
        for pair in self["pairs"]:
            first = pair["first"] == self["agent"]
            difference = pair["difference"] if first else -pair["difference"]
            rival = pair["second" if first else "first"]
            notes.append(
                f"{self['agent']} against {self['names'].get(rival, rival)}: {difference:+.4f} "
                f"on {pair['n']:g} common forecasts, p {_probability(pair['p_holm'])} (Holm)"
            )
        faults = self["faults"]
        notes += [f"fault: {fault}" for fault in faults["first"]]
        if self.get("cost_usd"):
            notes.append(f"the agent spent {self['cost_usd']:.4f} dollars")
        return [*notes, f"{faults['count']} faults. {self['caution']}", f"digest {self['digest']}"]

    def __str__(self) -> str:
        """The table for a terminal."""
        from rich.console import Console
        from rich.markup import escape as escape_markup
        from rich.table import Column, Table

        table = Table(Column(HEADINGS[0], no_wrap=True), *HEADINGS[1:], title=self.title, caption=CAPTION)
        for key, (name, *figures) in self.rows():
            table.add_row(escape_markup(name), *figures, style="bold" if key == self["agent"] else None)
        console = Console(file=io.StringIO(), highlight=False, markup=False, width=WIDTH)
        console.print(table)
        for note in self.notes():
            console.print(note, soft_wrap=True)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        lines = [f"<table><caption>{escape(self.title)}</caption><thead><tr>"]
        lines += [f"<th>{escape(heading)}</th>" for heading in HEADINGS]
        lines.append("</tr></thead><tbody>")
        for key, cells in self.rows():
            style = ' style="font-weight:bold"' if key == self["agent"] else ""
            lines.append(f"<tr{style}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        lines.append("</tbody></table>")
        lines += [f"<p>{escape(note)}</p>" for note in (CAPTION, *self.notes())]
        return "\n".join(lines)


def _probability(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else f"= {_figure(value)}"


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_figure, value))
    return "–" if value is None else f"{value:.4f}"
