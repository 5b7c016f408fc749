"""The leaderboards of the forecast protocol."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from forecast_rank.metrics.panel import Panel
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.settings import Settings

from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.exports.verification.forecast_records import ForecastRecords
from scoring.services.forecast_panels import ResolvedEntry, external_panel, panels

FIGURES = ("coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "alpha", "average_return")
METRICS, GAMMAS = ("brier", "log", "spherical", "average_return", "alpha"), ("0", "0.5", "1")


def check_forecast_leaderboards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and ranks of each arm, methodology and category follow from forecasts."""
    if not archive.is_whole:
        return
    records = ForecastRecords(archive)
    key = ("arm", "methodology", "category")
    rows = sorted(archive.rows("leaderboard_forecast"), key=lambda row: [row[name] for name in key])
    missing = {(batch["arm"], "", "") for batch in records.batches.values()}
    for (arm, methodology, category), leaderboard in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        missing.discard((arm, methodology, category))
        entries = records.resolved(arm, methodology)
        entries = [entry for entry in entries if category in ("", entry.category)]
        externals = records.families(arm, methodology, external=True)
        computed = _leaderboard(entries, records.families(arm, methodology), externals)
        stated = {row["forecaster"]: row for row in leaderboard}
        name = f"leaderboard_forecast: {arm} {methodology or 'all'} {category}".strip()
        if stated.keys() != computed.keys():
            yield f"{name} lists {sorted(stated)}, asked families and references are {sorted(computed)}"
            continue
        for forecaster, figures in computed.items():
            yield from mismatches(f"{name}, {forecaster}", stated[forecaster], figures)
            published = {figure: stated[forecaster][figure] for figure in ("rank", *FIGURES)}
            yield from mismatches(f"{name}, figures of {forecaster}", stated[forecaster]["figures"], published)
    for arm, *_ in sorted(missing):
        yield f"leaderboard_forecast: the leaderboard of arm {arm} is missing"


def _leaderboard(entries: list[ResolvedEntry], families: list[str], externals: list[str]) -> dict[str, Row]:
    built = panels(entries, families)
    report = rank_panel(built.families, Settings(METRICS, GAMMAS), reference_panel=built.references)
    figures_by_name = report["forecasters"] | report["references"]
    answered = _answered(built.families, entries) | _answered(built.references, entries)
    if externals:
        panel = external_panel(entries, externals)
        figures_by_name |= rank_panel(built.families, Settings(METRICS, GAMMAS), reference_panel=panel)["references"]
        answered |= _answered(panel, entries)
    briers = [f["brier"] for f in report["forecasters"].values() if f["brier"] is not None]
    computed = {}
    for name, figures in figures_by_name.items():
        low, high = figures["rank_range"] or (None, None)
        score = figures["brier"]
        computed[name] = {
            "reference": name in report["references"],
            "external": name in externals,
            "rank": None if name in externals else 1 + sum(score is None or other < score for other in briers),
            "rank_low": low,
            "rank_high": high,
            "n": answered.get(name, 0),
            "forecasts": figures["n"],
            **{figure: figures.get(figure) for figure in FIGURES},
        }
    return computed


def _answered(panel: Panel, entries: list[ResolvedEntry]) -> dict[str, int]:
    """Number of distinct questions that each forecaster answered."""
    questions: dict[str, set[int]] = defaultdict(set)
    for forecaster, entry in zip(panel.forecaster.tolist(), panel.question.tolist(), strict=True):
        questions[panel.forecasters[forecaster]].add(entries[entry].question)
    return {name: len(answered) for name, answered in questions.items()}
