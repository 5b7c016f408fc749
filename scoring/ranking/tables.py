"""A ranking as tables for a person: the best of each column marked, intervals beside what they belong to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from rich.table import Table
from rich.text import Text

BEST = "*"
PAIRS_SHOWN = 12
REJECTED_SHOWN = 10
SIGNIFICANT = 0.05
NAME_WIDTH, REASON_WIDTH = 40, 100

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, where its figure is, how it is written, and which way is better (None: neither)."""

    heading: str
    key: str
    digits: int = 4
    lower: bool | None = False
    under: str | None = None
    interval: bool = False
    error: str | None = None

    def value(self, entry: Entry) -> Any:
        found = entry.get(self.key)
        return found.get(self.under) if self.under is not None and isinstance(found, dict) else found

    def text(self, entry: Entry) -> str:
        value = self.value(entry)
        if value is None:
            return "–"
        if isinstance(value, list):
            return "–".join(str(part) for part in value)
        text = str(value) if isinstance(value, int) else f"{value:.{self.digits}f}"
        if self.interval and (ends := self._beside(entry, f"{self.key}_ci")):
            text += f" [{', '.join('–' if end is None else f'{end:.{self.digits}f}' for end in ends)}]"
        if self.error and (error := self._beside(entry, self.error)) is not None:
            text += f" ± {error:.{self.digits}f}"
        return text

    def _beside(self, entry: Entry, key: str) -> Any:
        found = entry.get(key)
        return found.get(self.under) if self.under is not None and isinstance(found, dict) else found


def heading(report: dict[str, Any]) -> str:
    """What was read and scored, in a line or two."""
    data = report["data"]
    lines = [
        f"{data['rows']:,} rows: {data['forecasts']:,} forecasts by {data['forecasters']:,} on {data['questions']:,} "
        f"questions of {data['events']:,} events; {data['priced']:,} with prices"
        + (f", overround {data['overround']:.3f}" if data["overround"] is not None else "")
        + (f"; {data['rejected']:,} rows rejected" if data["rejected"] else "")
        + (f"; {data['superseded']:,} rows superseded by later forecasts" if data["superseded"] else "")
    ]
    if data["ignored_columns"]:
        lines.append(f"columns of no meaning here: {shown(', '.join(data['ignored_columns']), REASON_WIDTH)}")
    return "\n".join([*lines, *report["notes"], ""])


def shown(text: str, width: int = NAME_WIDTH) -> Text:
    """Text from outside on one line: without control characters, markup as it stands, no longer than `width`."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return Text(line if len(line) <= width else line[: width - 1] + "…")


def tables(report: dict[str, Any]) -> Iterator[tuple[str, Table]]:
    """The tables of a report, those that it has figures for, each with its title."""
    for title, ranking, columns in _boards(report):
        if ranking in report["rankings"]:
            yield f"{title}; {BEST} best", _board(report, ranking, columns)
    if report["pairs"]:
        found = sum(pair["p_holm"] is not None and pair["p_holm"] < SIGNIFICANT for pair in report["pairs"])
        yield (
            f"Pairs on common questions: {found:,} of {len(report['pairs']):,} differ in the Brier score at "
            f"{SIGNIFICANT:.0%} (Holm); neighbours in the ranking",
            _pairs(report),
        )
    if len(report["rankings"]) > 1 and len(report["forecasters"]) > 1:
        yield "Agreement of rankings: Spearman's rho", _agreement(report)
    if report["rejected"]:
        more = len(report["rejected"]) - REJECTED_SHOWN
        tail = f"; {more:,} more in the report" if more > 0 else ""
        yield f"Rejected rows: {len(report['rejected']):,}{tail}", _rejected(report["rejected"])


def _boards(report: dict[str, Any]) -> Iterator[tuple[str, str, list[Column]]]:
    if report["settings"]["like"]:
        names = list(report["rankings"])
        columns = [Column(name.replace("_", " "), name, lower=name == "calibration") for name in names]
        yield f"By the definitions of {report['settings']['like']}, in order of its Brier score", "brier", columns
        return
    level = f"{report['settings']['level']:.0%}"
    yield (
        f"Brier score, mean form, lower is better [{level} interval]",
        "brier",
        [
            Column("n", "n", lower=None),
            Column("coverage", "coverage", 3, lower=None),
            Column("Brier", "brier", lower=True, interval=True),
            Column("ranks", "rank_range", lower=None),
            Column("best in", "probability_best", 3, under="brier"),
            Column("sum form", "brier_sum", lower=True),
            Column("skill, uniform", "bss_uniform"),
            Column("skill, market", "bss_market"),
        ],
    )
    clip = report["settings"]["log_clip"]
    yield (
        f"Log score, natural, clipped at {clip:g}; higher is better",
        "log",
        [
            Column("log", "log", interval=True),
            Column("ranks", "rank_ranges", under="log", lower=None),
            Column("infinite", "infinite_losses", lower=True),
        ],
    )
    for name, title in (("spherical", "Spherical score"), ("accuracy", "Accuracy of the top option")):
        columns = [Column(name, name, interval=True), Column("ranks", "rank_ranges", under=name, lower=None)]
        yield f"{title}, higher is better", name, columns
    for gamma in report["settings"]["gammas"]:
        yield (
            f"Averaged return per dollar, gross, at risk aversion {gamma}; beside it what holding cash would have made",
            f"average_return:{gamma}",
            [
                Column("return", "average_return", under=gamma, interval=True),
                Column("ranks", "rank_ranges", under=f"average_return:{gamma}", lower=None),
                Column("Sharpe", "sharpe", 3, under=gamma),
                Column("log wealth", "log_wealth", under=gamma, interval=True),
                Column("certain", "certainty_equivalent", under=gamma),
                Column("ruins", "ruins", under=gamma, lower=True),
            ],
        )
    yield (
        "Alpha: the market's Brier score less one's own, at the prices seen; higher is better",
        "alpha",
        [Column("alpha", "alpha", interval=True), Column("ranks", "rank_ranges", under="alpha", lower=None)],
    )
    yield (
        "Calibration: expected calibration error (ECE), lower is better",
        "calibration",
        [
            Column("ECE", "ece", lower=True, interval=True),
            Column("ranks", "rank_ranges", under="calibration", lower=None),
            Column("noise floor", "ece_noise_floor", lower=None),
            Column("debiased", "ece_debiased", lower=True),
            Column("largest", "max_calibration_error", lower=True),
            Column("slope", "calibration_slope", 3, lower=None),
            Column("intercept", "calibration_intercept", 3, lower=None),
            Column("sharpness", "sharpness", lower=None),
        ],
    )
    yield from _models()


def _models() -> Iterator[tuple[str, str, list[Column]]]:
    yield (
        "Brier score for the difficulty of one's questions: own effect + mean question effect; lower is better",
        "adjusted_brier",
        [
            Column("coverage", "coverage", 3, lower=None),
            Column("adjusted", "adjusted_brier", lower=True, interval=True),
            Column("ranks", "rank_ranges", under="adjusted_brier", lower=None),
            Column("raw", "brier", lower=True),
        ],
    )
    yield (
        "Brier score weighted by the questions' discrimination, cross-fitted; lower is better",
        "weighted_brier",
        [
            Column("weighted", "weighted_brier", lower=True, interval=True),
            Column("ranks", "rank_ranges", under="weighted_brier", lower=None),
        ],
    )
    yield (
        "Bradley–Terry: ability by who was nearer on common questions, not by how much; a pool weight is no ability",
        "bradley_terry",
        [
            Column("ability", "bt_ability", 3, error="bt_se"),
            Column("ranks", "rank_ranges", under="bradley_terry", lower=None),
            Column("pool weight", "pool_weight", 3, lower=None),
        ],
    )
    yield (
        "Item response theory (two parameters, continuous): ability",
        "irt",
        [
            Column("ability", "irt_ability", 3, error="irt_se"),
            Column("ranks", "rank_ranges", under="irt", lower=None),
        ],
    )


def _board(report: dict[str, Any], ranking: str, columns: list[Column]) -> Table:
    """One ranking, the references in their places without a rank."""
    table = _plain_table()
    table.add_column("#", justify="right")
    table.add_column("")
    lead = next(column for column in columns if column.lower is not None)
    people: dict[str, Entry] = report["forecasters"]
    best = {column.heading: _best(column, people) for column in columns}
    for column in columns:
        table.add_column(column.heading, justify="right")
    rows: list[tuple[str, str, Entry]] = [
        (str(place) if lead.value(people[name]) is not None else "–", name, people[name])
        for place, name in enumerate(report["rankings"][ranking], start=1)
    ]
    for name, entry in report["references"].items():
        rows.insert(_place(rows, lead, entry), ("", f"({name})", entry))
    for place, name, entry in rows:
        own = not name.startswith("(") or place
        marks = [BEST if own and column.text(entry) == best[column.heading] else "" for column in columns]
        cells = [column.text(entry) + mark for column, mark in zip(columns, marks, strict=True)]
        style = "" if place else "dim"
        table.add_row(place, shown(name), *map(Text, cells), style="bold" if place == "1" else style)
    return table


def _place(rows: list[tuple[str, str, Entry]], lead: Column, entry: Entry) -> int:
    """Where a reference belongs among rows from best to worst: before the first one that is worse or unknown."""
    own = lead.value(entry)
    if own is None:
        return len(rows)
    for index, (_, _, other) in enumerate(rows):
        value = lead.value(other)
        if value is None or (value > own if lead.lower else value < own):
            return index
    return len(rows)


def _best(column: Column, people: dict[str, Entry]) -> str | None:
    if column.lower is None:
        return None
    known = [entry for entry in people.values() if column.value(entry) is not None]
    if len(known) < 2:
        return None
    if all(column.value(entry) == column.value(known[0]) for entry in known):
        return None
    choose: Callable[..., Entry] = min if column.lower else max
    return column.text(choose(known, key=column.value))


def _pairs(report: dict[str, Any]) -> Table:
    table = _plain_table()
    for heading, side in (
        ("", "left"),
        ("common", "right"),
        ("difference", "right"),
        ("p", "right"),
        ("Holm", "right"),
        ("BH", "right"),
        ("questions to tell 0.01 apart", "right"),
    ):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    of_names = {frozenset((pair["first"], pair["second"])): pair for pair in report["pairs"]}
    order = report["rankings"]["brier"]
    for better, worse in islice(pairwise(order), PAIRS_SHOWN):
        pair = of_names[frozenset((better, worse))]
        sign = 1 if pair["first"] == better else -1
        gap = "–" if pair["difference"] is None else f"{sign * pair['difference']:+.4f}"
        error = "" if pair["se"] is None else f" ± {pair['se']:.4f}"
        chances = ["–" if pair[key] is None else f"{pair[key]:.3f}" for key in ("p", "p_holm", "p_bh")]
        needed = "–" if pair["questions_needed"] is None else f"{pair['questions_needed']:,.0f}"
        table.add_row(shown(f"{better} – {worse}"), str(pair["n"]), gap + error, *chances, needed)
    return table


def _agreement(report: dict[str, Any]) -> Table:
    table = _plain_table()
    table.add_column("")
    names = list(report["agreement"]["spearman"])
    for number in range(1, len(names) + 1):
        table.add_column(str(number), justify="right")
    for number, row in enumerate(names, start=1):
        values = [report["agreement"]["spearman"][row][column] for column in names[:number]]
        table.add_row(f"{number} {row}", *("–" if value is None else f"{value:.2f}" for value in values))
    return table


def _rejected(rejected: list[dict[str, Any]]) -> Table:
    table = _plain_table()
    table.add_column("row", justify="right")
    table.add_column("why")
    for item in rejected[:REJECTED_SHOWN]:
        table.add_row(str(item["row"]), shown(item["why"], REASON_WIDTH))
    return table


def _plain_table() -> Table:
    return Table(box=None, pad_edge=False, header_style="")
