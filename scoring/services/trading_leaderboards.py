"""The trading leaderboard: families ranked by mean return, with intervals. Computed after a change, stored, read."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from django.db import transaction

from agents.models import Agent, Family
from agents.services.call_usage import decision_costs
from arena_verifier.intervals import ranges_of, return_pairs
from arena_verifier.trading_leaderboard import return_figures
from foundation.bulk import subset
from foundation.consistent_reads import consistent_reads
from markets.services.cache_versions import Scope, renew_versions
from scoring.constants import ALL_METHODOLOGIES, TRADING
from scoring.leaderboard_keys import LeaderboardKey, versions_in_play
from scoring.models import Leaderboard
from scoring.selectors.competition import AgentSummary, attach_competition, competition_index, started_by
from scoring.selectors.return_pairs import pair_values, return_test
from scoring.selectors.scored_bets import scored_fields
from scoring.selectors.valuations import Valuation, snapshot_valuations, valuations
from scoring.selectors.weekly_returns import WeeklyReturns, weekly_returns
from scoring.services.after_costs import NO_FIGURES, Figures, agents_after_costs, as_json, families_after_costs
from scoring.services.bet_calibration import bet_calibration
from scoring.services.largest_bets import add_returns_without_largest_bet
from scoring.services.trading_risk import trading_risk


class LeaderboardContents(NamedTuple):
    """The entries of a leaderboard and its report, as they are stored."""

    entries: list[dict[str, Any]]
    report: dict[str, Any]


class CohortResult(NamedTuple):
    """The value of a family's agent in a cohort, and its return by week."""

    value: Valuation
    weeks: WeeklyReturns


def refresh_trading_leaderboards(*, at: datetime) -> int:
    """Recomputes and stores the leaderboard over all methodologies and that of each version in play; returns how many.

    Accounts after costs are taken from the stored one: at 200 cohorts it takes 18 s to walk 27,000 books. The rest is
    computed anew; what follows from scores alone takes 0.9 s (SQLite, two busy cores).
    """
    computed = compute_trading_leaderboards(stored_accounts())
    store_leaderboards(computed, at=at)
    return len(computed)


@consistent_reads()  # a cohort that starts meanwhile would be there in part
def compute_trading_leaderboards(accounts: dict[str, Any] | None = None) -> dict[LeaderboardKey, LeaderboardContents]:
    """The leaderboard over all methodologies and that of each version in play, as they are to be stored.

    `accounts` are stored accounts after costs, as `agents_after_costs` takes them.
    """
    accounts = {} if accounts is None else accounts
    after_costs = agents_after_costs(board_participants(ALL_METHODOLOGIES, None)[0], accounts=accounts)
    versions, contents = versions_in_play(TRADING), {}
    # One version alone has the leaderboard of all.
    for version in [ALL_METHODOLOGIES, *(versions if len(versions) > 1 else [])]:
        contents[version] = trading_leaderboard(version, after_costs=after_costs)
        add_returns_without_largest_bet(contents[version].entries, version)
        risk = board_risk(contents[version], version)
        contents[version].report.update(calibration=bet_calibration(version), risk=risk)
    overall = contents[ALL_METHODOLOGIES]
    # Without the accounts of voided cohorts.
    overall.report["accounts"] = subset(accounts, map(str, after_costs))
    overall.report["costs"] = {entry["family"]: entry["cost_usd"] for entry in overall.entries}
    leaderboards = {}
    for version in [ALL_METHODOLOGIES, *versions]:
        leaderboards[LeaderboardKey(TRADING, version)] = contents.get(version, contents[ALL_METHODOLOGIES])
    return leaderboards


def board_risk(contents: LeaderboardContents, methodology: str, at: datetime | None = None) -> dict[str, Any]:
    """Luck and risk of the families of a leaderboard, now or as of an instant."""
    ranked = sorted(filter(itemgetter("rank"), contents.entries), key=itemgetter("rank", "family"))
    return trading_risk(
        contents.report["weeks"],
        list(map(itemgetter("family"), ranked)),
        methodology,
        until=at,
    )


def store_leaderboards(
    leaderboards: Mapping[Any, LeaderboardContents],
    *,
    at: datetime,
    model: Any = Leaderboard,
) -> None:
    """Stores current leaderboards, by their keys, in place of those before, in one statement."""
    rows: list[Any] = []
    fields: Sequence[str] = ()
    for key, board in leaderboards.items():
        rows.append(model(**key._asdict(), **board._asdict(), computed_at=at))
        fields = key._fields
    if not rows:
        return
    with transaction.atomic():
        model._default_manager.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=fields,
            update_fields=("computed_at", *LeaderboardContents._fields),
        )
        renew_versions(Scope.LEADERBOARDS)


def trading_leaderboard(
    methodology: str = ALL_METHODOLOGIES,
    *,
    at: datetime | None = None,
    category: str = "",
    after_costs: dict[int, Figures] | None = None,
) -> LeaderboardContents:
    """The leaderboard, ranked by mean return over cohorts; its report holds the returns and their paired tests.

    Equal returns share a rank. Rank ranges are those that the tests leave.

    External agents follow without a rank: they may answer a quarter of an hour later than the line-up.

    With `at`, the leaderboard of a past instant: cohorts started by then, values of the newest snapshots by then,
    scores of markets resolved by then, costs of universes frozen by then. A `category` narrows the SCORED fields to
    bets on its markets; an agent has one bankroll for all of them, so values, returns and ranks stay those over all.

    `after_costs` are the figures after costs of agents by id; those that it lacks are computed and added. They are
    those of now: a past leaderboard has none.
    """
    participants, values = board_participants(methodology, at)
    results_of = cohort_results(participants, values, at)
    scored = scored_fields(methodology, at, category, results_of)
    contents = ranked_contents(results_of, scored, decision_costs(methodology, at=at))
    return _with_figures_after_costs(contents, participants, values, {} if after_costs is None else after_costs, at)


def stored_accounts() -> dict[str, Any]:
    """The accounts after costs of the stored leaderboard, as `agents_after_costs` takes them."""
    stored = Leaderboard.objects.filter(**LeaderboardKey(TRADING, ALL_METHODOLOGIES)._asdict())
    return stored.values_list("report__accounts", flat=True).first() or {}


def _with_figures_after_costs(
    contents: LeaderboardContents,
    participants: Sequence[Agent | AgentSummary],
    values: Mapping[int, Valuation],
    after_costs: dict[int, Figures],
    at: datetime | None,
) -> LeaderboardContents:
    """The leaderboard with the figures after costs of families in its entries, and those of agents in its report."""
    if at is not None:
        entries = [{**entry, **NO_FIGURES, "return_without_largest_bet": None} for entry in contents.entries]
        return contents._replace(entries=entries)
    after_costs |= agents_after_costs([agent for agent in participants if agent.pk not in after_costs])
    of_families = families_after_costs(participants, values, after_costs)
    entries = [entry | of_families[entry["family"]] for entry in contents.entries]
    of_agents = {str(agent.pk): as_json(after_costs[agent.pk]) for agent in participants}
    return LeaderboardContents(entries, {**contents.report, "after_costs": of_agents})


def cohort_results(
    participants: Sequence[Agent | AgentSummary], values: Mapping[int, Valuation], at: datetime | None
) -> dict[Family, dict[int, CohortResult]]:
    """The result of each family by cohort number, given the values of its agents by id."""
    weeks = weekly_returns(participants, values, at)
    results_of: dict[Family, dict[int, CohortResult]] = defaultdict(dict)
    for agent in participants:
        results_of[agent.family][agent.cohort.number] = CohortResult(values[agent.pk], weeks[agent.pk])
    return results_of


def ranked_contents(
    results_of: Mapping[Family, Mapping[int, CohortResult]],
    scored: Mapping[int, Mapping[str, Any]],
    costs: Mapping[int, Decimal],
    competitors: Collection[str] | None = None,
) -> LeaderboardContents:
    """The leaderboard of families by their results by cohort number, and by their SCORED fields and costs by id.

    `competitors` are the slugs of those to rank; by default all but external agents.
    """
    returns: dict[str, dict[int, float]] = defaultdict(dict)
    weeks: dict[str, dict[int, WeeklyReturns]] = defaultdict(dict)
    rows = []
    for family, results in results_of.items():
        for cohort, result in results.items():
            returns[family.slug][cohort] = result.value.return_percent
            weeks[family.slug][cohort] = result.weeks
        rows.append(_entry(family, [*results.values()], weeks[family.slug], scored[family.pk], costs))
    if competitors is None:
        competitors = {row["family"] for row in rows if not row["external"]}
    ranked = [row for row in rows if row["family"] in competitors]
    slugs = list(map(itemgetter("family"), ranked))
    tests = return_pairs(subset(weeks, slugs))
    ranges = ranges_of(slugs, tests)
    for row in ranked:
        row["rank_low"], row["rank_high"] = ranges[row["family"]]
        row["rank"] = 1 + sum(rival["return_percent"] > row["return_percent"] for rival in ranked)
    rows.sort(key=lambda row: (row["external"], -row["return_percent"], row["family"]))
    earning = {row["family"]: return_test(weeks[row["family"]]) for row in ranked}
    return LeaderboardContents(
        rows, {"returns": returns, "weeks": weeks, "pairs": pair_values(tests), "earning": earning}
    )


def board_participants(
    methodology: str, at: datetime | None
) -> tuple[Sequence[Agent | AgentSummary], dict[int, Valuation]]:
    """The agents of a leaderboard in the order of their cohorts, and their values now or as of an instant, by id."""
    if at is not None:
        running = started_by(competition_index().counted_under(methodology), at)
        running.sort(key=attrgetter("cohort.number"))
        return running, snapshot_valuations(running, at)
    agents = Agent.objects.filter(cohort__voided_at=None).order_by("cohort__number", "family")
    if methodology:
        agents = agents.filter(cohort__methodology__version=methodology)
    participants = attach_competition(agents)
    return participants, valuations(participants)


def _entry(
    family: Family,
    results: Sequence[CohortResult],
    weeks: Mapping[int, WeeklyReturns],
    scored: Mapping[str, Any],
    costs: Mapping[int, Decimal],
) -> dict[str, Any]:
    values = [result.value for result in results]
    rows = [{"return_percent": v.return_percent, "total_value": v.total, "pnl": v.pnl} for v in values]
    figures = return_figures(rows, weeks)
    return {
        "family": family.slug,
        "display_name": family.display_name,
        "external": family.external,
        **dict.fromkeys(("rank", "rank_low", "rank_high")),
        **figures,
        "total_value": str(figures["total_value"]),
        "pnl": str(figures["pnl"]),
        **scored,
        "cost_usd": f"{costs.get(family.pk, Decimal(0)):.6f}",
    }
