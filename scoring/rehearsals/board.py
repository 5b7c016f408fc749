"""The board of a rehearsal: the agent's results, and the models' own in the same weeks and on the same questions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from agents.models import Agent, Family
from agents.models.ledger import CENT
from arena_verifier.rows import Row
from foundation.bulk import subset
from scoring.exports.sound_archives import instant
from scoring.exports.verification.archive_reader import Archive
from scoring.leaderboard_keys import arms_asked
from scoring.rehearsals.past import Timeline
from scoring.selectors.forecast_panels import Selection, forecast_vector, resolved_entries
from scoring.selectors.valuations import NO_RECORD, bet_records, snapshot_valuations
from scoring.services.forecast_ranking import forecast_leaderboard

RESULT = ("cohort", "cash", "total_value", "brier", "resolved_bets")
FIGURES = ("n", "brier", "brier_ci", "adjusted_brier", "log", "alpha")


def trading_board(tables: Archive, timeline: Timeline, family: Family) -> list[dict[str, Any]]:
    """A row for the agent and each model, by mean value over the span's cohorts."""
    names, by_family = _model_names(tables), _models_results(tables, timeline)
    rows = [_trading_row(family.slug, family.display_name, True, _agents_results(family, timeline))]
    for slug, results in by_family.items():
        if slug in names:
            rows.append(_trading_row(slug, names[slug], False, results))
    rows.sort(key=lambda row: (-row["total_value"], not row["rehearsed"], row["forecaster"]))
    return rows


def forecast_boards(tables: Archive, timeline: Timeline, family: Family) -> dict[str, list[dict[str, Any]]]:
    """The board of each arm: the agent, the models and the references on the span's resolved questions."""
    names, by_arm = _model_names(tables), {}
    for arm in arms_asked():
        by_arm[arm] = {entry.entry: entry for entry in resolved_entries(Selection(arm, until=timeline.end))}
    for row in tables.rows("forecasts"):
        entry = by_arm.get(row["arm"], {}).get(row["entry"])
        if entry is not None and row["family"] in names and not row.get("excluded"):
            entry.forecasts[row["family"]] = forecast_vector(row["probabilities"], entry.options)
    boards = {}
    for arm, entries in by_arm.items():
        if entries:
            externals = {family.slug: family.display_name}
            contents = forecast_leaderboard([*entries.values()], names, externals, reported=False)
            boards[arm] = _forecast_rows(contents.entries)
    return boards


def _forecast_rows(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the agent and of all who answered a question, by Brier score."""
    rows = []
    for entry in entries:
        if entry["n"] or entry["external"]:
            row = subset(entry, ("forecaster", "display_name", "reference", *FIGURES))
            rows.append({**row, "rehearsed": entry["external"]})
    return sorted(rows, key=lambda row: (row["brier"] is None, row["brier"], not row["rehearsed"]))


def _model_names(tables: Archive) -> dict[str, str]:
    """The display names of the models' families by slug."""
    names = {}
    for row in tables.rows("families"):
        if not row["external"]:
            names[row["slug"]] = row["display_name"]
    return names


def _agents_results(family: Family, timeline: Timeline) -> list[dict[str, Any]]:
    """The agent's result in each cohort, valued at its last snapshot."""
    agents = list(Agent.objects.filter(family=family).select_related("cohort__methodology").order_by("cohort__number"))
    values, records = snapshot_valuations(agents, timeline.end), bet_records(agents)
    results = []
    for agent in agents:
        value, record = values[agent.pk], records.get(agent.pk, NO_RECORD)
        figures = (agent.cohort.number, value.cash, value.total, record.brier, record.resolved_bets)
        results.append(dict(zip(RESULT, figures, strict=True)))
    return results


def _models_results(tables: Archive, timeline: Timeline) -> dict[str, list[dict[str, Any]]]:
    """Each model's result in each of the span's cohorts, by its last snapshot in the span."""
    cohorts = {row["number"] for row in timeline.cohorts}
    newest: dict[int, Row] = {}
    for row in tables.rows("snapshots"):
        agent = row["agent"]
        is_in_span = instant(row["taken_at"]) <= timeline.end
        if is_in_span and (agent not in newest or newest[agent]["taken_at"] < row["taken_at"]):
            newest[agent] = row
    by_family: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for agent in tables.rows("agents"):
        if agent["cohort"] in cohorts:
            start = {"cash": agent["starting_balance"], "total_value": agent["starting_balance"]}
            figures = newest.get(agent["id"], start | {"brier": None, "resolved_bets": 0})
            by_family[agent["family"]].append(subset({**figures, "cohort": agent["cohort"]}, RESULT))
    return by_family


def _trading_row(slug: str, name: str, rehearsed: bool, results: list[dict[str, Any]]) -> dict[str, Any]:
    """The means over cohorts; the bet-implied Brier score is pooled over all resolved bets."""
    bets, score, total = 0, 0.0, Decimal(0)
    for result in results:
        total += result["total_value"]
        if result["resolved_bets"]:
            bets += result["resolved_bets"]
            score += result["brier"] * result["resolved_bets"]
    return {
        "forecaster": slug,
        "display_name": name,
        "rehearsed": rehearsed,
        "total_value": (total / max(len(results), 1)).quantize(CENT),
        "bet_brier": score / bets if bets else None,
        "resolved_bets": bets,
        "cohorts": sorted(results, key=lambda result: result["cohort"]),
    }
