"""The tables of a report: one for each ranking, then pairs, agreement and rejected rows."""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

from forecast_rank.ranking.names import distinct_names, printable
from forecast_rank.ranking.ranking_tables import BEST, ranking_columns, ranking_table
from forecast_rank.ranking.tables import NAME_WIDTH, ReportTable

PAIRS_SHOWN = 12
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
        + (f"; {data['unresolved']:,} rows of questions without an outcome left out" if data["unresolved"] else "")
        + (f"; {data['normalised']:,} forecasts divided by their sum" if data["normalised"] else "")
    ]
    if data["ignored_columns"]:
        lines.append(f"unknown columns, ignored: {printable(', '.join(data['ignored_columns']), REASON_WIDTH)}")
    return "\n".join([*lines, *report["notes"], ""])


def report_tables(report: dict[str, Any]) -> Iterator[ReportTable]:
    """The tables that a report has figures for: a table for each ranking, then pairs, agreement and rejected rows."""
    columns_by_ranking = sorted(ranking_columns(report), key=lambda table: table[1] != report.get("headline"))
    for title, ranking, columns in columns_by_ranking:
        if ranking in report["rankings"]:
            yield ranking_table(report, ranking, f"{title}; {BEST} best", columns)
    if report["pairs"] and "brier" in report["rankings"]:
        yield _pairs_table(report)
    if len(report["rankings"]) > 1 and len(report["forecasters"]) > 1:
        yield _agreement_table(report)
    if report["rejected"]:
        yield _rejected_table(report)


def _pairs_table(report: dict[str, Any]) -> ReportTable:
    """Paired tests of neighbours in the ranking by the Brier score."""
    pairs = report["pairs"]
    significant = sum(pair["p_holm"] is not None and pair["p_holm"] < SIGNIFICANCE_LEVEL for pair in pairs)
    by_names = {frozenset((pair["first"], pair["second"])): pair for pair in pairs}
    rows = []
    written = distinct_names(report["forecasters"], NAME_WIDTH)
    for better, worse in islice(pairwise(report["rankings"]["brier"]), PAIRS_SHOWN):
        pair = by_names.get(frozenset((better, worse)))
        if pair is None:
            continue
        sign = 1 if pair["first"] == better else -1
        difference = "–" if pair["difference"] is None else f"{sign * pair['difference']:+z.4f}"
        error = f" ± {pair['margin']:.4f}" if pair["margin"] else ""
        row = [f"{written[better]} – {written[worse]}", str(pair["n"]), difference + error]
        for key in ("p", "p_holm", "p_bh"):
            row.append(_cell(pair[key], ".3f"))
        row.append(_cell(pair["questions_needed"], ",.0f"))
        rows.append(row)
    title = (
        f"Pairs on common questions: {significant:,} of {len(pairs):,} differ in the Brier score at "
        f"{SIGNIFICANCE_LEVEL:.0%} (Holm); neighbours in the ranking"
    )
    header = ["", "common", f"difference ± {1 - SIGNIFICANCE_LEVEL:.0%} interval (Holm)", "p", "Holm", "BH"]
    header.append("questions to tell 0.01 apart")
    return ReportTable("pairs", title, header, rows)


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
