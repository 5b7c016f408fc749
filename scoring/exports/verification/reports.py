"""The figures of reports, with all intervals and simulations."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from agents.models import Family, Release
from arena_verifier.report_figures import REPORT_FIGURES
from arena_verifier.report_figures import answer_usage as archived_usage
from arena_verifier.rows import Row, mismatches
from arena_verifier.trading_leaderboard import cohort_results, weekly_returns
from arena_verifier.trading_risk import locked_returns
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.forecasts import ForecastRecords
from scoring.services.consistency_report import asked_questions, event_markets, group_profits
from scoring.services.cost_report import AnswerUsage
from scoring.services.release_report import ReleaseRecords
from scoring.services.report_figures import Figure, forecast_figures, risk_figures
from scoring.services.report_parts import ReportInputs, archived_parts
from scoring.services.trading_risk import ResolvedBet, family_risks, simulate_bettors

KEY = ("report", "arm", "forecaster", "part", "figure")
DATES = ("released_on", "knowledge_cutoff", "declared_cutoff")


def check_report_figures(archive: Archive) -> Iterator[str]:
    """Every figure and interval follows from the other tables, and each is there once."""
    if not archive.is_whole:
        return
    computed = {tuple(row[name] for name in KEY): row for row in _figures(archive)}
    for row in archive.rows(REPORT_FIGURES):
        key = tuple(row[name] for name in KEY)
        name = f"{REPORT_FIGURES}: {' '.join(key)}"
        figures = computed.pop(key, None)
        if figures is None:
            yield f"{name} follows from no other table"
        else:
            yield from mismatches(name, row, figures)
    for key in computed:
        yield f"{REPORT_FIGURES}: {' '.join(key)} is missing"


def _figures(archive: Archive) -> Iterator[Figure]:
    records, releases, usage = ForecastRecords(archive), _releases(archive), archived_usage(archive)
    batches = archive.by("question_batches")
    for arm in sorted({batch["arm"] for batch in batches.values()}):
        of_arm = {}
        for (pk, release), figures in usage.items():
            if batches[pk]["arm"] == arm:
                of_arm[batches[pk]["question_set"], batches[pk]["number"], release] = AnswerUsage(*figures)
        inputs = ReportInputs(of_arm, releases, _profits(archive, records, arm))
        parts = archived_parts(records.resolved(arm, ""), records.families(arm, "", external=False), inputs)
        yield from forecast_figures(arm, parts)
    yield from risk_figures(_risk(archive))


def _releases(archive: Archive) -> ReleaseRecords:
    releases = {}
    for pk, row in archive.by("releases").items():
        dates = {name: date.fromisoformat(row[name]) if row[name] else None for name in DATES}
        names = {name: row[name] for name in ("model_id", "display_name")}
        releases[pk] = Release(pk=pk, family=Family(slug=row["family"]), **names, **dates)
    firsts: dict[int, float] = {}
    for row in archive.by("forecasts").values():
        made_at = datetime.fromisoformat(row["made_at"]).timestamp()
        firsts[row["release"]] = min(made_at, firsts.get(row["release"], made_at))
    return ReleaseRecords(releases, firsts)


def _profits(archive: Archive, records: ForecastRecords, arm: str) -> Any:
    """The profits against the forecasts of an arm that count."""
    externals = {row["slug"] for row in archive.rows("families") if row["external"]}
    forecasts = []
    for row in archive.rows("forecasts"):
        is_counted = not row["excluded"] and archive.counts_in(arm, records.entries[row["entry"]])
        if row["arm"] == arm and is_counted and row["family"] not in externals:
            forecasts.append(row)
    forecasts.sort(key=lambda row: (records.releases[row["release"]]["effective_from"], row["id"]))
    pks = {row["question"] for row in forecasts}
    options, questions, outcomes = [], archive.by("questions"), archive.by("outcomes")
    for row in sorted(archive.rows("question_options"), key=lambda row: (row["question"], row["index"])):
        if row["question"] in pks:
            question, outcome = questions[row["question"]], outcomes.get(row["outcome"], {"market": None, "side": ""})
            of_question = question["event_key"], question["exclusive"]
            options.append((row["question"], *of_question, row["name"], outcome["market"], outcome["side"]))
    duplicates = set()
    for entry in records.entries.values():
        if {entry["question"], entry["duplicate"]} <= pks:
            duplicates.add((entry["question"], entry["duplicate"]))
    asked = asked_questions(options, duplicates)
    columns, markets = ("id", "option", "question", "event_title", "event_exclusive"), archive.by("markets")
    market_ids = {option[4] for option in options} - {None}
    events = event_markets(asked.values(), [[markets[pk][column] for column in columns] for pk in market_ids])
    stated = []
    for row in forecasts:
        day = archive.by("question_sets")[records.entries[row["entry"]]["question_set"]]["day"]
        probabilities = row["stated"] if row["normalised"] else row["probabilities"]
        stated.append((row["family"], datetime.fromisoformat(day), row["question"], probabilities))
    return group_profits(stated, asked, events)


def _risk(archive: Archive) -> dict[str, Any]:
    agents, families = {}, archive.by("families", "slug")
    players: dict[str, list[Row]] = defaultdict(list)
    for pk, agent in archive.by("agents").items():
        if not archive.by("cohorts", "number")[agent["cohort"]]["voided_at"]:
            agents[pk] = agent
            players[agent["family"]].append(agent)
    by_week, weeks = weekly_returns(archive), {}
    for family, rows in players.items():
        results = cohort_results(rows, by_week)
        weeks[family] = {cohort: _dated(result["weeks"]) for cohort, result in results.items()}
    ranked = [family for family in weeks if not families[family]["external"]]
    locked = locked_returns(archive, list(agents.values()))
    return family_risks(weeks, ranked, locked, simulate_bettors(_bets(archive, agents), ranked))


def _dated(returns: Mapping[datetime, float]) -> dict[str, float]:
    return {f"{week:%Y-%m-%d}": value for week, value in returns.items()}


def _bets(archive: Archive, agents: Mapping[int, Row]) -> Iterator[ResolvedBet]:
    outcomes, trades = archive.by("outcomes"), archive.by("trades")
    sides = Counter(row["market"] for row in outcomes.values())
    for row in archive.rows("brier_scores"):
        if row["agent"] in agents:
            trade = trades[row["trade"]]
            side, money = outcomes[trade["outcome"]]["index"], (float(trade["shares"]), float(trade["amount"]))
            of_market = row["market"], row["outcome"], row["market_probability"], side, sides[row["market"]]
            yield ResolvedBet(agents[row["agent"]]["family"], *of_market, *money)
