"""The figures of reports, with all intervals and simulations."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from agents.models import Family, Release
from arena_verifier.report_figures import REPORT_FIGURES
from arena_verifier.report_figures import answer_usage as archived_usage
from arena_verifier.rows import Row
from arena_verifier.trading_leaderboard import cohort_results, weekly_returns
from arena_verifier.trading_risk import locked_returns
from foundation.bulk import subset
from scoring.exports.archived_forecasts import ArchivedForecasts
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.rows import check_computed
from scoring.services.consistency_report import (
    AskedOption,
    AskedQuestion,
    DailyForecast,
    GroupProfit,
    ListedMarket,
    asked_questions,
    event_markets,
    group_profits,
    named_markets,
)
from scoring.services.cost_report import AnswerUsage, TaskKey
from scoring.services.release_report import ReleaseRecords
from scoring.services.report_figures import Figure, forecast_figures, risk_figures
from scoring.services.report_parts import ReportInputs, archived_parts
from scoring.services.trading_risk import ResolvedBet, family_risks, simulate_bettors

DATES = ("released_on", "knowledge_cutoff", "declared_cutoff")
NO_OUTCOME: Row = {"market": None, "side": ""}


def check_report_figures(archive: Archive) -> Iterator[str]:
    """Every figure and interval follows from the other tables, and each is there once."""
    if archive.is_whole:
        yield from check_computed(archive, REPORT_FIGURES, _figures(archive), "follows from no other table")


def _figures(archive: Archive) -> Iterator[Figure]:
    records, releases = ArchivedForecasts(archive), _releases(archive)
    for arm in records.arms():
        inputs = ReportInputs(_usage(archive, arm), releases, _profits(archive, records, arm))
        yield from forecast_figures(arm, archived_parts(records.resolved(arm), records.family_names(arm), inputs))
    yield from risk_figures(_risk(archive))


def _releases(archive: Archive) -> ReleaseRecords:
    releases = {}
    for pk, row in archive.by("releases").items():
        dates = {}
        for name in DATES:
            dates[name] = date.fromisoformat(row[name]) if row[name] else None
        names = subset(row, ("model_id", "display_name"))
        releases[pk] = Release(pk=pk, family=Family(slug=row["family"]), **names, **dates)
    firsts: dict[int, float] = {}
    for row in archive.by("forecasts").values():
        made_at = datetime.fromisoformat(row["made_at"]).timestamp()
        firsts[row["release"]] = min(made_at, firsts.get(row["release"], made_at))
    return ReleaseRecords(releases, firsts)


def _usage(archive: Archive, arm: str) -> dict[TaskKey, AnswerUsage]:
    """The cost, time and tokens of an answer, by task of an arm."""
    usage = {}
    for (pk, release), figures in archived_usage(archive).items():
        batch = archive.by("question_batches")[pk]
        if batch["arm"] == arm:
            usage[batch["question_set"], batch["number"], release] = AnswerUsage(*figures)
    return usage


def _profits(archive: Archive, records: ArchivedForecasts, arm: str) -> Mapping[str, Sequence[GroupProfit]]:
    """The profits against the forecasts of an arm that count."""
    entries, releases = archive.by("question_entries"), archive.by("releases")
    forecasts = []
    for row in archive.by("forecasts").values():
        is_counted = not row["excluded"] and archive.counts_in(arm, entries[row["entry"]])
        if row["arm"] == arm and is_counted and row["family"] not in records.externals:
            forecasts.append(row)
    forecasts.sort(key=lambda row: (releases[row["release"]]["effective_from"], row["id"]))
    pks = {row["question"] for row in forecasts}
    duplicates = set()
    for entry in entries.values():
        if {entry["question"], entry["duplicate"]} <= pks:
            duplicates.add((entry["question"], entry["duplicate"]))
    questions = asked_questions(_asked_options(archive, pks), duplicates)
    events = event_markets(questions.values(), _listed_markets(archive, questions.values()))
    statements = []
    for row in forecasts:
        question_set = archive.by("question_sets")[entries[row["entry"]]["question_set"]]
        probabilities = row["stated"] if row["normalised"] else row["probabilities"]
        day = datetime.fromisoformat(question_set["day"])
        statements.append(DailyForecast(row["family"], day, row["question"], probabilities))
    return group_profits(statements, questions, events)


def _asked_options(archive: Archive, questions: set[int]) -> Iterator[AskedOption]:
    """The options of these questions, in their order."""
    outcomes = archive.by("outcomes")
    for row in sorted(archive.rows("question_options"), key=lambda row: (row["question"], row["index"])):
        if row["question"] in questions:
            question, outcome = archive.by("questions")[row["question"]], outcomes.get(row["outcome"], NO_OUTCOME)
            yield AskedOption(
                question["id"],
                question["event_key"],
                question["exclusive"],
                row["name"],
                outcome["market"],
                outcome["side"],
            )


def _listed_markets(archive: Archive, questions: Iterable[AskedQuestion]) -> Iterator[ListedMarket]:
    """The markets that these questions name."""
    for pk in sorted(named_markets(questions)):
        row = archive.by("markets")[pk]
        yield ListedMarket(row["id"], row["option"], row["question"], row["event_title"], row["event_exclusive"])


def _risk(archive: Archive) -> dict[str, Any]:
    """The figures of luck and risk, of agents in cohorts that are not voided."""
    agents, families = {}, archive.by("families", "slug")
    players: dict[str, list[Row]] = defaultdict(list)
    for pk, agent in archive.by("agents").items():
        if not archive.by("cohorts", "number")[agent["cohort"]]["voided_at"]:
            agents[pk] = agent
            players[agent["family"]].append(agent)
    by_week = weekly_returns(archive)
    weeks: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for family, rows in players.items():
        for cohort, result in cohort_results(rows, by_week).items():
            weeks[family][cohort] = {f"{week:%Y-%m-%d}": value for week, value in result["weeks"].items()}
    ranked = [family for family in weeks if not families[family]["external"]]
    locked = locked_returns(archive, list(agents.values()))
    return family_risks(weeks, ranked, locked, simulate_bettors(_bets(archive, agents), ranked))


def _bets(archive: Archive, agents: Mapping[int, Row]) -> Iterator[ResolvedBet]:
    outcomes, trades = archive.by("outcomes"), archive.by("trades")
    sides = Counter(row["market"] for row in outcomes.values())
    for score in archive.rows("brier_scores"):
        if score["agent"] in agents:
            trade = trades[score["trade"]]
            yield ResolvedBet(
                family=agents[score["agent"]]["family"],
                market=score["market"],
                won=score["outcome"],
                price=score["market_probability"],
                side=outcomes[trade["outcome"]]["index"],
                sides=sides[score["market"]],
                shares=float(trade["shares"]),
                amount=float(trade["amount"]),
            )
