"""The board of a rehearsal: the agent's results, and the models' own in the same weeks and on the same questions."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agents.models import Agent, Family
from agents.models.ledger import CENT
from arena_verifier.rows import Row
from foundation.bulk import subset
from markets.models import QuestionBatch
from scoring.exports.sound_archives import instant
from scoring.exports.verification.archive_reader import Archive
from scoring.rehearsals.past import Timeline
from scoring.selectors.valuations import NO_RECORD, bet_records, snapshot_valuations
from scoring.services.forecast_panels import Selection, forecast_vector, resolved_entries
from scoring.services.forecast_ranking import forecast_leaderboard

FIGURES = ("n", "brier", "brier_ci", "adjusted_brier", "log", "alpha")


def trading_board(tables: Archive, timeline: Timeline, family: Family) -> list[dict[str, Any]]:
    """A row for the agent and each model, by mean value over the span's cohorts."""
    rows = [_trading_row(family.slug, family.display_name, True, _agents_results(family, timeline))]
    names = _model_names(tables)
    by_family: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in _models_results(tables, timeline):
        by_family[result.pop("family")].append(result)
    rows += [_trading_row(slug, names[slug], False, results) for slug, results in by_family.items() if slug in names]
    rows.sort(key=lambda row: (-row["total_value"], not row["rehearsed"], row["forecaster"]))
    return rows


def forecast_boards(tables: Archive, timeline: Timeline, family: Family) -> dict[str, list[dict[str, Any]]]:
    """The board of each arm: the agent, the models and the references on the span's resolved questions."""
    names = _model_names(tables)
    arms = QuestionBatch.objects.order_by("arm").values_list("arm", flat=True).distinct()
    by_arm = {arm: resolved_entries(Selection(arm, until=timeline.end)) for arm in arms}
    by_key = {(arm, entry.entry): entry for arm, entries in by_arm.items() for entry in entries}
    for row in tables.rows("forecasts"):
        entry = by_key.get((row["arm"], row["entry"]))
        if entry is not None and row["family"] in names and not row.get("excluded"):
            entry.forecasts[row["family"]] = forecast_vector(row["probabilities"], entry.options)
    boards = {}
    for arm, entries in by_arm.items():
        if entries:
            contents = forecast_leaderboard(entries, names, {family.slug: family.display_name}, reported=False)
            rows = [_forecast_row(entry) for entry in contents.entries if entry["n"] or entry["external"]]
            boards[arm] = sorted(rows, key=lambda row: (row["brier"] is None, row["brier"], not row["rehearsed"]))
    return boards


def _forecast_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    names = {"forecaster": entry["forecaster"], "display_name": entry["display_name"]}
    kinds = {"rehearsed": entry["external"], "reference": entry["reference"]}
    return names | kinds | subset(entry, FIGURES)


def _model_names(tables: Archive) -> dict[str, str]:
    """The display names of the models' families by slug."""
    return {row["slug"]: row["display_name"] for row in tables.rows("families") if not row["external"]}


def _agents_results(family: Family, timeline: Timeline) -> list[dict[str, Any]]:
    """The agent's result in each cohort, valued at its last snapshot."""
    agents = list(Agent.objects.filter(family=family).select_related("cohort__methodology").order_by("cohort__number"))
    values = snapshot_valuations(agents, timeline.end)
    records = bet_records(agents)
    results = []
    for agent in agents:
        value, record = values[agent.pk], records.get(agent.pk, NO_RECORD)
        results.append(
            {
                "cohort": agent.cohort.number,
                "cash": value.cash,
                "total_value": value.total,
                "brier": record.brier,
                "resolved_bets": record.resolved_bets,
            }
        )
    return results


def _models_results(tables: Archive, timeline: Timeline) -> list[dict[str, Any]]:
    """Each model's result in each of the span's cohorts, by its last snapshot in the span."""
    cohorts = {row["number"] for row in timeline.cohorts}
    agents = {row["id"]: row for row in tables.rows("agents") if row["cohort"] in cohorts}
    newest: dict[int, Row] = {}
    for row in tables.rows("snapshots"):
        agent = row["agent"]
        if agent not in agents or instant(row["taken_at"]) > timeline.end:
            continue
        if agent not in newest or newest[agent]["taken_at"] < row["taken_at"]:
            newest[agent] = row
    results = []
    for pk, agent in agents.items():
        start = {"cash": agent["starting_balance"], "total_value": agent["starting_balance"]}
        figures = newest.get(pk, start | {"brier": None, "resolved_bets": 0})
        names = ("cash", "total_value", "brier", "resolved_bets")
        identity = {"family": agent["family"], "cohort": agent["cohort"]}
        results.append(identity | subset(figures, names))
    return results


def _trading_row(slug: str, name: str, rehearsed: bool, results: list[dict[str, Any]]) -> dict[str, Any]:
    """The means over cohorts; the bet-implied Brier score is pooled over all resolved bets."""
    bets = sum(result["resolved_bets"] for result in results)
    scores = [result["brier"] * result["resolved_bets"] for result in results if result["resolved_bets"]]
    total = sum((result["total_value"] for result in results), Decimal(0))
    return {
        "forecaster": slug,
        "display_name": name,
        "rehearsed": rehearsed,
        "total_value": (total / max(len(results), 1)).quantize(CENT),
        "bet_brier": sum(scores) / bets if bets else None,
        "resolved_bets": bets,
        "cohorts": sorted(results, key=lambda result: result["cohort"]),
    }
