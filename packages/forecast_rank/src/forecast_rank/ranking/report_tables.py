"""The tables of a report as text cells, with the best figure of each column marked."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

from forecast_rank.ranking.names import distinct_names, printable
from forecast_rank.ranking.settings import ARENA_EVALUATION, PM_RANK

BEST = "*"
PAIRS_SHOWN = 12
SCORES_PRINTED, OTHER_SCORES_SHOWN = 3, 4
"""A report of more scores prints the first and one table of the others, with so many of them."""
REJECTED_SHOWN = 10
ROWS_PRINTED = 50
"""Forecasters in a table where a report is printed; all are in its JSON, and in its tables as Markdown and LaTeX."""
SIGNIFICANCE_LEVEL = 0.05
LOWER_IS_BETTER = {PM_RANK: ("calibration",), ARENA_EVALUATION: ("brier", "ece")}
"""The figures of other packages of which the lowest is marked; of all others the highest."""
NAME_WIDTH, CELL_WIDTH, REASON_WIDTH = 40, 40, 100

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as text.

    Attributes
    ----------
    name : str
        The ranking that it shows, or "pairs", "agreement", "rejected".
    title : str
    header : list of str
    rows : list of list of str
        As long as `header`.
    text_columns : frozenset of int
        Columns that are aligned left; the others hold figures.
    printed : bool
        Whether the table is shown where a report is printed; it has every table by name.
    names : int or None
        The column of forecasters' names, which are whole.
    """

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    text_columns: frozenset[int] = frozenset({0})
    printed: bool = True
    names: int | None = None

    def first_rows(self) -> "ReportTable":
        """The table where a report is printed: ROWS_PRINTED forecasters and the references, and how many it lacks."""
        rows, forecasters = [], 0
        for row in self.rows:
            is_reference = self.header[0] == "#" and not row[0]
            forecasters += not is_reference
            if is_reference or forecasters <= ROWS_PRINTED:
                rows.append(row)
        if not (hidden := len(self.rows) - len(rows)):
            return self
        return replace(self, rows=rows, title=f"{self.title}; {hidden:,} more in the JSON report")

    def shortened(self) -> "ReportTable":
        """The table for a terminal, its names no longer than NAME_WIDTH; two names stay two."""
        if self.names is None:
            return self
        short = distinct_names((row[self.names] for row in self.rows), NAME_WIDTH)
        rows = [[*row[: self.names], short[row[self.names]], *row[self.names + 1 :]] for row in self.rows]
        return replace(self, rows=rows)


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """A column of a ranking's table.

    Attributes
    ----------
    heading : str
    key : str
        The figure, by its key in an entry of the report.
    digits : int
        Decimals shown.
    lower : bool or None
        Whether lower is better; None if neither direction is, so that no best figure is marked.
    under : str or None
        Key within the figure, if that is a mapping: a gamma or a ranking.
    interval : bool
        Whether `KEY_ci` is shown behind the figure.
    error : str or None
        Key of the standard error shown behind the figure.
    """

    heading: str
    key: str
    digits: int = 4
    lower: bool | None = False
    under: str | None = None
    interval: bool = False

    def value(self, entry: Entry) -> Any:
        """The figure in an entry, None if it has none."""
        return self._lookup(entry, self.key)

    def text(self, entry: Entry) -> str:
        """The figure as it is printed."""
        value = self.value(entry)
        if value is None:
            return "–"
        if isinstance(value, list):
            return "–".join(str(part) for part in value)
        text = str(value) if isinstance(value, int) else f"{value:z.{self.digits}f}"
        if self.interval and (ends := self._lookup(entry, f"{self.key}_ci")):
            text += f" [{', '.join('–' if end is None else f'{end:z.{self.digits}f}' for end in ends)}]"
        return text

    def _lookup(self, entry: Entry, key: str) -> Any:
        value = entry.get(key)
        return value.get(self.under) if self.under is not None and isinstance(value, dict) else value


def report_heading(report: dict[str, Any]) -> str:
    """The size of the data and the notes of a report, in a few lines."""
    data = report["data"]
    lines = [
        f"{data['rows']:,} rows: {data['forecasts']:,} forecasts by {data['forecasters']:,} on {data['questions']:,} "
        f"questions of {data['events']:,} events; {data['priced']:,} with prices"
        + (f", overround {data['overround']:.3f}" if data["overround"] is not None else "")
        + (f"; {data['rejected']:,} rows rejected" if data["rejected"] else "")
        + (f"; {data['superseded']:,} rows superseded by later forecasts" if data["superseded"] else "")
        + (f"; {data['repeated']:,} rows repeated" if data["repeated"] else "")
        + (f"; {data['normalised']:,} forecasts divided by their sum" if data["normalised"] else "")
    ]
    if data["ignored_columns"]:
        lines.append(f"unknown columns, ignored: {printable(', '.join(data['ignored_columns']), REASON_WIDTH)}")
    return "\n".join([*lines, *report["notes"], ""])


def report_tables(report: dict[str, Any]) -> Iterator[ReportTable]:
    """The tables that a report has figures for: a table for each ranking, then pairs, agreement and rejected rows."""
    printed = _printed_rankings(report)
    columns_by_ranking = sorted(_ranking_columns(report), key=lambda table: table[1] != report.get("headline"))
    for title, ranking, columns in columns_by_ranking:
        if ranking in report["rankings"]:
            table = _ranking_table(report, ranking, f"{title}; {BEST} best", columns)
            yield replace(table, printed=ranking in printed)
    if summed_up(report):
        yield _other_scores_table(report)
    if report["pairs"] and _paired_score(report) in report["rankings"]:
        yield _pairs_table(report)
    if len(report["rankings"]) > 1 and len(report["forecasters"]) > 1:
        yield replace(_agreement_table(report), printed=printed >= set(report["rankings"]))
    if report["rejected"]:
        yield _rejected_table(report)


def _printed_rankings(report: dict[str, Any]) -> set[str]:
    """The rankings whose tables are printed: all of forecasts, of scores those that say more than another table."""
    scores = report["settings"].get("scores")
    if not scores:
        return set(report["rankings"])
    plain = [_paired_score(report)] if summed_up(report) else list(scores)
    return {*plain, report["headline"]}


def summed_up(report: dict[str, Any]) -> bool:
    """Whether the scores after the first are shown in one table."""
    settings = report["settings"]
    return bool(settings.get("shares")) or len(settings.get("scores", ())) > SCORES_PRINTED


def _paired_score(report: dict[str, Any]) -> str:
    """The ranking by the score in which pairs are compared."""
    return str(report["settings"].get("pairs_by", "brier"))


def _other_scores_table(report: dict[str, Any]) -> ReportTable:
    """Means of the scores after the first, and of the shares, a column each; of many some evenly chosen."""
    settings, forecasters = report["settings"], report["forecasters"]
    names = [name for name in settings["scores"] if name != _paired_score(report)]
    step = max(1, math.ceil(len(names) / OTHER_SCORES_SHOWN))
    shown_rows = names[::-step][::-1]
    columns = [
        FigureColumn(name.replace("_", " "), name, lower=settings["scores"][name] == "lower") for name in shown_rows
    ]
    levels = {name.rpartition("_")[2] for name in shown_rows}
    shares = [name for name in settings["shares"] if name.rpartition("_")[2] in levels]
    columns += [FigureColumn(name.replace("_", " "), name, 3, lower=None) for name in shares]
    order = report["rankings"].get(report["headline"], list(forecasters))
    written = distinct_names(order)
    rows = [[written[name], *(column.text(forecasters[name]) for column in columns)] for name in order]
    hidden = len(names) - len(shown_rows)
    title = "Other scores, means" + (f"; {hidden} more in to_dict() and to_polars()" if hidden else "")
    return ReportTable("scores", title, ["", *(column.heading for column in columns)], rows, names=0)


def _ranking_columns(report: dict[str, Any]) -> Iterator[tuple[str, str, list[FigureColumn]]]:
    """Title, ranking and columns of every table of a ranking."""
    if report["settings"]["like"]:
        lower = LOWER_IS_BETTER[report["settings"]["like"]]
        columns = [FigureColumn(name.replace("_", " "), name, lower=name in lower) for name in report["rankings"]]
        yield f"By the definitions of {report['settings']['like']}, in order of its Brier score", "brier", columns
        return
    level = f"{report['settings']['level']:.0%}"
    yield (
        f"Brier score, mean form, lower is better [{level} interval]",
        "brier",
        [
            FigureColumn("n", "n", lower=None),
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn("Brier", "brier", lower=True, interval=True),
            FigureColumn("ranks", "rank_range", lower=None),
            FigureColumn("P(best)", "probability_best", 3, under="brier"),
            FigureColumn("sum form", "brier_sum", lower=True),
            FigureColumn("skill, uniform", "bss_uniform"),
            FigureColumn("skill, market", "bss_market"),
        ],
    )
    clip = report["settings"]["log_clip"]
    yield (
        f"Log score, natural, clipped at {clip:g}; higher is better",
        "log",
        [
            FigureColumn("log", "log", interval=True),
            _ranks("log"),
            FigureColumn("infinite", "infinite_losses", lower=True),
        ],
    )
    for name, title in (("spherical", "Spherical score"), ("accuracy", "Accuracy of the top option")):
        yield f"{title}, higher is better", name, [FigureColumn(name, name, interval=True), _ranks(name)]
    yield (
        f"Ranked probability score, options in the order of {_option_order(report)}, lower is better",
        "ranked_probability",
        [FigureColumn("RPS", "ranked_probability", lower=True, interval=True), _ranks("ranked_probability")],
    )
    for name, better in report["settings"].get("scores", {}).items():
        columns = [
            FigureColumn("n", "n", lower=None),
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn(name, name, lower=better == "lower", interval=True),
            _ranks(name),
        ]
        yield f"{name}, {better} is better [{level} interval]", name, columns
        adjusted = [
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn("adjusted", f"adjusted_{name}", lower=better == "lower", interval=True),
            _ranks(f"adjusted_{name}"),
            FigureColumn("raw", name, lower=better == "lower"),
        ]
        title = f"{name} adjusted for difficulty: forecaster effect + mean question effect; {better} is better"
        yield title, f"adjusted_{name}", adjusted
    for gamma in report["settings"]["gammas"]:
        yield (
            f"Averaged return per dollar, gross, at risk aversion {gamma}; log wealth and certain: cash allowed",
            f"average_return:{gamma}",
            [
                FigureColumn("return", "average_return", under=gamma, interval=True),
                _ranks(f"average_return:{gamma}"),
                FigureColumn("Sharpe", "sharpe", 3, under=gamma),
                FigureColumn("log wealth", "log_wealth", under=gamma, interval=True),
                FigureColumn("certain", "certainty_equivalent", under=gamma),
                FigureColumn("ruins", "ruins", under=gamma, lower=True),
            ],
        )
    yield (
        "Alpha: Brier score of the market less the forecaster's, at the prices seen; higher is better",
        "alpha",
        [FigureColumn("alpha", "alpha", interval=True), _ranks("alpha")],
    )
    yield (
        "Calibration: expected calibration error (ECE), lower is better",
        "calibration",
        [
            FigureColumn("ECE", "ece", lower=True, interval=True),
            _ranks("calibration"),
            FigureColumn("noise floor", "ece_noise_floor", lower=None),
            FigureColumn("debiased", "ece_debiased", lower=True),
            FigureColumn("largest", "max_calibration_error", lower=True),
            FigureColumn("MCB", "corp", under="miscalibration", lower=True),
            FigureColumn("DSC", "corp", under="discrimination"),
            FigureColumn("slope", "calibration_slope", 3, lower=None),
            FigureColumn("intercept", "calibration_intercept", 3, lower=None),
            FigureColumn("sharpness", "sharpness", lower=None),
        ],
    )
    yield from _model_columns()


def _model_columns() -> Iterator[tuple[str, str, list[FigureColumn]]]:
    yield (
        "Difficulty-adjusted Brier score: forecaster effect + mean question effect; lower is better",
        "adjusted_brier",
        [
            FigureColumn("coverage", "coverage", 3, lower=None),
            FigureColumn("adjusted", "adjusted_brier", lower=True, interval=True),
            _ranks("adjusted_brier"),
            FigureColumn("raw", "brier", lower=True),
        ],
    )
    yield (
        "Brier score weighted by the questions' discrimination, cross-fitted; lower is better",
        "weighted_brier",
        [FigureColumn("weighted", "weighted_brier", lower=True, interval=True), _ranks("weighted_brier")],
    )
    yield (
        "Thurstone–Mosteller: ability by margins on common questions, in deviations of a score difference",
        "thurstone_mosteller",
        [
            FigureColumn("ability", "tm_ability", 3, interval=True),
            _ranks("thurstone_mosteller"),
            FigureColumn("pool weight", "pool_weight", 3, lower=None),
        ],
    )
    yield (
        "Bradley–Terry: ability by wins on common questions, whatever the margin; a pool weight is no ability",
        "bradley_terry",
        [
            FigureColumn("ability", "bt_ability", 3, interval=True),
            _ranks("bradley_terry"),
            FigureColumn("pool weight", "pool_weight", 3, lower=None),
        ],
    )
    yield (
        "Item response theory (two parameters, continuous): ability",
        "irt",
        [FigureColumn("ability", "irt_ability", 3, interval=True), _ranks("irt")],
    )


def _option_order(report: dict[str, Any]) -> str:
    return str(report["settings"].get("option_order", "the file"))


def _ranks(ranking: str) -> FigureColumn:
    return FigureColumn("ranks", "rank_ranges", under=ranking, lower=None)


def _ranking_table(report: dict[str, Any], ranking: str, title: str, columns: list[FigureColumn]) -> ReportTable:
    """A ranking in order; equals share a rank, and each reference stands in its place without one.

    Forecasters with too few questions for a rank come last.
    """
    lead = next(column for column in columns if column.lower is not None)
    forecasters: dict[str, Entry] = report["forecasters"]
    order = report["rankings"][ranking]
    best = {column.heading: _best_text(column, {name: forecasters[name] for name in order}) for column in columns}
    values = [lead.value(forecasters[name]) for name in order]
    rows: list[tuple[str, str, Entry]] = [
        ("–" if value is None else str(1 + values.index(value)), name, forecasters[name])
        for name, value in zip(order, values, strict=True)
    ]
    ranked = set(order)
    unranked = [("–", name, entry) for name, entry in forecasters.items() if name not in ranked]
    for name, entry in report["references"].items():
        rows.insert(_insertion_index(rows, lead, entry), ("", f"({name})", entry))
    cells = []
    written = distinct_names(name for _, name, _ in [*rows, *unranked])
    for rank, name, entry in [*rows, *unranked]:
        texts = [column.text(entry) for column in columns]
        if name in ranked and rank:  # references and the unranked are never marked as the best
            texts = [t + BEST * (t == best[column.heading]) for t, column in zip(texts, columns, strict=True)]
        cells.append([rank, written[name], *texts])
    header = ["#", "", *(column.heading for column in columns)]
    return ReportTable(ranking, title, header, cells, text_columns=frozenset({1}), names=1)


def _insertion_index(rows: list[tuple[str, str, Entry]], lead: FigureColumn, entry: Entry) -> int:
    """The index of the first row that is worse than `entry` in the column `lead`, or has no figure."""
    figure = lead.value(entry)
    if figure is None:
        return len(rows)
    for index, (_, _, rival) in enumerate(rows):
        value = lead.value(rival)
        if value is None or (value > figure if lead.lower else value < figure):
            return index
    return len(rows)


def _best_text(column: FigureColumn, forecasters: dict[str, Entry]) -> str | None:
    """The best figure of a column as text; None if all are equal or fewer than two are known."""
    with_value = [entry for entry in forecasters.values() if column.value(entry) is not None]
    if column.lower is None or len(with_value) < 2:
        return None
    if all(column.value(entry) == column.value(with_value[0]) for entry in with_value):
        return None
    choose: Callable[..., Entry] = min if column.lower else max
    return column.text(choose(with_value, key=column.value))


def _pairs_table(report: dict[str, Any]) -> ReportTable:
    """Paired tests of neighbours in the Brier ranking."""
    pairs = report["pairs"]
    significant = sum(pair["p_holm"] is not None and pair["p_holm"] < SIGNIFICANCE_LEVEL for pair in pairs)
    by_names = {frozenset((pair["first"], pair["second"])): pair for pair in pairs}
    rows = []
    written = distinct_names(report["forecasters"], NAME_WIDTH)
    for better, worse in islice(pairwise(report["rankings"][_paired_score(report)]), PAIRS_SHOWN):
        pair = by_names.get(frozenset((better, worse)))
        if pair is None:
            continue
        sign = 1 if pair["first"] == better else -1
        difference = "–" if pair["difference"] is None else f"{sign * pair['difference']:+z.4f}"
        error = f" ± {pair['margin']:.4f}" if pair["margin"] else ""
        p_values = ["–" if pair[key] is None else f"{pair[key]:.3f}" for key in ("p", "p_holm", "p_bh")]
        questions = "–" if pair["questions_needed"] is None else f"{pair['questions_needed']:,.0f}"
        rows.append([f"{written[better]} – {written[worse]}", str(pair["n"]), difference + error, *p_values, questions])
    score = "the Brier score" if _paired_score(report) == "brier" else _paired_score(report)
    title = (
        f"Pairs on common questions: {significant:,} of {len(pairs):,} differ in {score} at "
        f"{SIGNIFICANCE_LEVEL:.0%} (Holm); neighbours in the ranking"
    )
    header = [
        "",
        "common",
        f"difference ± {1 - SIGNIFICANCE_LEVEL:.0%} interval (Holm)",
        "p",
        "Holm",
        "BH",
        "questions to tell 0.01 apart",
    ]
    if _paired_score(report) != "brier":  # the difference that is asked about is one of Brier scores
        header, rows = header[:-1], [row[:-1] for row in rows]
    return ReportTable("pairs", title, header, rows)


def _agreement_table(report: dict[str, Any]) -> ReportTable:
    spearman = report["agreement"]["spearman"]
    names = list(spearman)
    rows = []
    for number, name in enumerate(names, start=1):
        values = ["–" if spearman[name][rival] is None else f"{spearman[name][rival]:z.2f}" for rival in names[:number]]
        rows.append([f"{number} {name}", *values, *[""] * (len(names) - number)])
    header = ["", *(str(number) for number in range(1, len(names) + 1))]
    return ReportTable("agreement", "Agreement of rankings: Spearman's rho", header, rows)


def _rejected_table(report: dict[str, Any]) -> ReportTable:
    """The rejected rows by reason, with the first line of each and how to mend it."""
    groups = report["rejection_groups"]
    rows = []
    for group in groups[:REJECTED_SHOWN]:
        first = f"line {group['first']}" + (f": {group['cell']}" if group["cell"] else "")
        why, fix = printable(group["why"], REASON_WIDTH), printable(group["fix"], REASON_WIDTH)
        rows.append([f"{group['count']:,}", why, printable(first, CELL_WIDTH), fix])
    hidden = len(groups) - REJECTED_SHOWN
    title = f"Rejected rows: {len(report['rejected']):,}" + (f"; {hidden:,} more reasons" if hidden > 0 else "")
    return ReportTable("rejected", title, ["rows", "why", "first", "to mend"], rows, text_columns=frozenset({1, 2, 3}))
