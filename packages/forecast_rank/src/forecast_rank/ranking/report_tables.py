"""The tables of a report: one for each ranking, then pairs, agreement and rejected rows."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from forecast_rank.ranking.names import distinct_names, printable
from forecast_rank.ranking.ranking_tables import BEST, ranking_columns, ranking_table
from forecast_rank.ranking.tables import NAME_WIDTH, FigureColumn, ReportTable

PAIRS_SHOWN = 12
SCORES_PRINTED, OTHER_SCORES_SHOWN = 3, 4
"""A report of more scores prints the first and one table of the others, with so many of them."""
REJECTED_SHOWN = 10
SIGNIFICANCE_LEVEL = 0.05
CELL_WIDTH, REASON_WIDTH = 40, 100


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
    columns_by_ranking = sorted(ranking_columns(report), key=lambda table: table[1] != report.get("headline"))
    for title, ranking, columns in columns_by_ranking:
        if ranking in report["rankings"]:
            table = ranking_table(report, ranking, f"{title}; {BEST} best", columns)
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
    return {*plain, report["headline"], "relative_skill"}


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
    shown_scores = names[::-step][::-1]
    columns, levels = [], set()
    for name in shown_scores:
        columns.append(FigureColumn(name.replace("_", " "), name, lower=settings["scores"][name] == "lower"))
        levels.add(name.rpartition("_")[2])
    for name in settings["shares"]:
        if name.rpartition("_")[2] in levels:
            columns.append(FigureColumn(name.replace("_", " "), name, 3, lower=None))
    order = report["rankings"].get(report["headline"], list(forecasters))
    written = distinct_names(order)
    rows = []
    for name in order:
        rows.append([written[name], *(column.text(forecasters[name]) for column in columns)])
    hidden = len(names) - len(shown_scores)
    title = "Other scores, means" + (f"; {hidden} more in to_dict() and to_polars()" if hidden else "")
    return ReportTable("scores", title, ["", *(column.heading for column in columns)], rows, names=0)


def _pairs_table(report: dict[str, Any]) -> ReportTable:
    """Paired tests of neighbours in the ranking, and their tests over time where a horizon is set."""
    pairs = report["pairs"]
    by_brier = _paired_score(report) == "brier"  # the difference that questions could tell is one of Brier scores
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
        row = [f"{written[better]} – {written[worse]}", str(pair["n"]), difference + error]
        for key in ("p", "p_holm", "p_bh"):
            row.append(_cell(pair[key], ".3f"))
        row += _time_test_cells(pair, sign)
        if by_brier:
            row.append(_cell(pair["questions_needed"], ",.0f"))
        rows.append(row)
    score = "the Brier score" if by_brier else _paired_score(report)
    title = (
        f"Pairs on common questions: {significant:,} of {len(pairs):,} differ in {score} at "
        f"{SIGNIFICANCE_LEVEL:.0%} (Holm); neighbours in the ranking"
    )
    header = ["", "common", f"difference ± {1 - SIGNIFICANCE_LEVEL:.0%} interval (Holm)", "p", "Holm", "BH"]
    if "dm_p" in pairs[0]:
        header += ["times", "Diebold–Mariano", "DM p", "DM Holm"]
    if by_brier:
        header.append("questions to tell 0.01 apart")
    return ReportTable("pairs", title, header, rows)


def _time_test_cells(pair: dict[str, Any], sign: int) -> list[str]:
    """Times, statistic and p-values of a pair's Diebold-Mariano test; none without a horizon."""
    if "dm_p" not in pair:
        return []
    statistic = None if pair["dm_statistic"] is None else sign * pair["dm_statistic"]
    p_value, corrected = _cell(pair["dm_p"], ".3f"), _cell(pair["dm_p_holm"], ".3f")
    return [_cell(pair["dm_times"], ","), _cell(statistic, "+z.2f"), p_value, corrected]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _agreement_table(report: dict[str, Any]) -> ReportTable:
    spearman = report["agreement"]["spearman"]
    names = list(spearman)
    rows = []
    for number, name in enumerate(names, start=1):
        row = [f"{number} {name}"]
        for rival in names[:number]:
            row.append(_cell(spearman[name][rival], "z.2f"))
        rows.append([*row, *[""] * (len(names) - number)])
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
