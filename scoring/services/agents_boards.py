"""The boards of external agents: ranked by track and protocol, with the models beside them.

They are made by the functions of the models' boards, of the questions that an agent of the track answered and of the
cohorts in which one takes part. Nothing of the models' boards is read from here or depends on it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain, product, starmap
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from django.db.models import Count, Min, QuerySet, Sum

from agents.letters import published
from agents.models import Agent, Attempt, Decision, Elicitation, Family, Forecast, Task
from arena_verifier.agents_boards import EQUAL_COVERAGE, repeats_price
from arena_verifier.trading_leaderboard import bet_figures
from cohorts.conditions import stored_conditions
from forecast_rank import Settings, rank_panel
from foundation.bulk import subset
from foundation.consistent_reads import consistent_reads
from scoring.constants import (
    ALL_METHODOLOGIES,
    FORECAST,
    LEAST_COVERAGE,
    LEAST_DECISIONS,
    LEAST_QUESTIONS,
    MARKET,
    TRADING,
    UNIFORM,
)
from scoring.models import AgentsBoard, BrierScore
from scoring.selectors.competition import AgentSummary
from scoring.selectors.forecast_panels import (
    ResolvedEntry,
    Selection,
    family_names,
    joint_panel,
    panels,
    resolved_entries,
    selection_families,
)
from scoring.selectors.scored_bets import bets_by_family
from scoring.services.agent_scores import AdjustedScore, AgentScores
from scoring.services.forecast_inputs import inputs_version
from scoring.services.forecast_ranking import REFERENCE_NAMES, ROUNDING, questions_answered, tests_by_question
from scoring.services.trading_leaderboards import (
    CohortResult,
    LeaderboardContents,
    board_participants,
    cohort_results,
    ranked_contents,
    store_leaderboards,
)

METRICS = ("brier", "alpha")
FORECAST_FIGURES = ("brier", "brier_ci", "alpha", "alpha_ci")
TRADING_FIGURES = ("cohorts", "total_value", "pnl", "win_rate", "resolved_bets")
FAILURES = ("failed", "missed", "refused", "late")
NOTHING: dict[str, Any] = dict.fromkeys(
    ("rank", "rank_low", "rank_high", "answered", "asked", "coverage", "score", "score_ci", "ranked_by",
     "price_distance", "repeats_price", "bss_uniform",
     *FORECAST_FIGURES, *TRADING_FIGURES, *FAILURES)
)  # fmt: skip
"""An entry of which nothing is known: a board of one protocol has no figures of the other."""
LINES = subset(REFERENCE_NAMES, (MARKET, UNIFORM))
ADJUSTED, ALPHA = "adjusted_brier", "alpha"
"""What ranks on a forecast board."""


class BoardKey(NamedTuple):
    """The selection that a board shows."""

    track: str
    protocol: str


class AskedTask(NamedTuple):
    """A decision or a batch of questions that was put to an agent."""

    frozen_at: datetime
    status: str
    refusals: int


Tasks = Mapping[str, Sequence[AskedTask]]
"""The tasks put to each family, by slug."""
Attempts = Mapping[str, Mapping[str, int]]
"""How many answers came late, by slug."""


def refresh_agents_boards(*, at: datetime) -> int:
    """Stores the boards of each track that has agents; returns how many."""
    boards = {key: agents_board(key) for key in board_keys()}
    store_leaderboards(boards, at=at, model=AgentsBoard)
    return len(boards)


def board_keys() -> list[BoardKey]:
    """The boards of all tracks with agents."""
    tracks = Family.objects.filter(external=True).order_by("track").values_list("track", flat=True).distinct()
    return list(starmap(BoardKey, product(tracks, (FORECAST, TRADING))))


@consistent_reads()
def agents_board(key: BoardKey, *, until: datetime | None = None) -> LeaderboardContents:
    """A board of a track, now or as of an instant."""
    compute = _forecast_board if key.protocol == FORECAST else _trading_board
    board = compute(key.track, until)
    board.report["inputs"] = _inputs(key.protocol)
    return board


def _inputs(protocol: str) -> dict[str, Any]:
    """Numbers that tell whether the facts behind a board are still those that it was made from."""
    tasks: QuerySet[Any] = Decision.objects.filter(agent__family__external=True)
    if protocol == FORECAST:
        tasks = Elicitation.objects.filter(family__external=True)
    by_status = published(tasks).order_by("status").values_list("status").annotate(Count("pk"), Sum("refusals"))
    attempts = list(published(Attempt.objects.all()).order_by("kind").values_list("kind").annotate(Count("pk")))
    inputs = {"tasks": list(by_status), "attempts": attempts}
    return inputs | (inputs_version(Selection(stored_conditions().board())) if protocol == FORECAST else {})


def _forecast_board(track: str, until: datetime | None) -> LeaderboardContents:
    selection = Selection(stored_conditions().board(), until=until)
    of_track = selection_families(selection).filter(external=True, track=track).order_by("pk")
    agents = dict(of_track.values_list("slug", "display_name"))
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, family__slug__in=list(agents)).order_by()
    first = dict(forecasts.values_list("family__slug").annotate(Min("entry")))
    tasks = selection.elicitations().filter(family__slug__in=list(agents))
    frozen_at = "batch__question_set__frozen_at"
    tasks_asked = _tasks(tasks, "family__slug", frozen_at, until)
    attempts = _attempts(Attempt.objects.filter(batch__arm=selection.arm), frozen_at, until)
    return forecast_agents_board(
        resolved_entries(selection), family_names(selection), agents, first, tasks_asked, attempts
    )


def forecast_agents_board(
    resolved: Sequence[ResolvedEntry],
    models: Mapping[str, str],
    agents: Mapping[str, str],
    first_entries: Mapping[str, int],
    tasks: Tasks,
    attempts: Attempts,
) -> LeaderboardContents:
    """The board over the entries that one of the agents answered.

    Ranks are by the adjusted Brier score, whose question effects come from models and references alone; by alpha where
    the ranked agents answered different questions. No agent's score depends on another's. `models` and `agents` are
    display names by slug, `first_entries` the first that each answered.
    """
    shared = [entry for entry in resolved if not agents.keys().isdisjoint(entry.external_forecasts)]
    joint, references = joint_panel(shared, [*models, *agents]), panels(shared, models).references
    answered = questions_answered(joint) | questions_answered(references)
    questions_by_agent = dict.fromkeys(agents, 0)
    for slug, first in first_entries.items():
        questions_by_agent[slug] = len({entry.question for entry in resolved if entry.entry >= first})
    competitors = set()
    for slug in agents:
        if is_ranked(answered[slug], questions_by_agent[slug], LEAST_QUESTIONS):
            competitors.add(slug)
    report = rank_panel(
        joint,
        Settings(METRICS),
        reference_panel=references,
        agreement_of_rankings=False,
        unranked=(models.keys() | agents.keys()) - competitors,
    )
    fit = AgentScores(resolved, models, agents)
    scores, figures_of = fit.scores(), report["forecasters"] | report["references"]
    by_alpha = _covers_differ(answered, competitors) and all(figures_of[s]["alpha"] is not None for s in competitors)
    ranges = {} if by_alpha else fit.rank_ranges(competitors)
    names = {**models, **agents, **LINES}
    entries = []
    for slug, figures in figures_of.items():
        if slug not in names or not (figures["n"] or slug in agents):
            continue
        score = scores.get(slug, AdjustedScore(None, None, None))
        entry = empty_entry(slug, names[slug], external=slug in agents, reference=slug in LINES)
        entry |= {name: figures.get(name) for name in ("bss_uniform", *FORECAST_FIGURES)}
        entry |= {"answered": answered[slug], "score": score.value, "score_ci": score.interval}
        if slug in agents:
            if slug in competitors:
                entry["ranked_by"] = ALPHA if by_alpha else ADJUSTED
                span = figures["rank_ranges"].get(ALPHA) if by_alpha else ranges.get(slug)
                entry["rank_low"], entry["rank_high"] = span or (None, None)
            entry["price_distance"] = score.price_distance
            entry["repeats_price"] = repeats_price(entry["alpha_ci"], score.price_distance)
            entry |= {"asked": questions_by_agent[slug], **_failures(slug, tasks, attempts)}
        entries.append(entry)
    data = report["data"] | {"questions": len({entry.question for entry in shared})}
    key, sign = (ALPHA, -1) if by_alpha else ("score", 1)
    return _board(entries, competitors, tests_by_question(report["pairs"]), data, key=key, sign=sign)


def _covers_differ(answered: Mapping[str, int], competitors: Collection[str]) -> bool:
    """True if the least number of questions that a ranked agent answered is much below the largest."""
    numbers = [answered[slug] for slug in competitors]
    return bool(numbers) and min(numbers) < EQUAL_COVERAGE * max(numbers)


def _trading_board(track: str, until: datetime | None) -> LeaderboardContents:
    participants, values = board_participants(ALL_METHODOLOGIES, until)
    by_cohort: dict[int, list[Agent | AgentSummary]] = defaultdict(list)
    for agent in participants:
        if agent.family.track in ("", track):
            by_cohort[agent.cohort.pk].append(agent)
    members: list[Agent | AgentSummary] = []
    for agents_of_cohort in by_cohort.values():
        if any(agent.family.track == track for agent in agents_of_cohort):
            members += agents_of_cohort
    agents = list(map(attrgetter("pk"), members))
    scores = BrierScore.objects.filter(agent__in=agents).order_by("pk")
    if until is not None:
        scores = scores.filter(resolved_at__lte=until)
    bets = bets_by_family(scores)
    scored = {family: bet_figures(bets[family]) for family in set(map(attrgetter("family.pk"), members))}
    decisions = Decision.objects.filter(agent__in=agents, agent__family__external=True).order_by()
    tasks = _tasks(decisions, "agent__family__slug", "universe__frozen_at", until)
    attempts = _attempts(Attempt.objects.filter(agent__in=agents), "universe__frozen_at", until)
    return trading_agents_board(cohort_results(members, values, until), scored, tasks, attempts)


def trading_agents_board(
    results_of: Mapping[Family, Mapping[int, CohortResult]],
    scored: Mapping[int, Mapping[str, Any]],
    tasks: Tasks,
    attempts: Attempts,
) -> LeaderboardContents:
    """The board over the cohorts in which an agent of the track takes part, by mean return."""
    answered, tasks_by_agent = {}, {}
    competitors = set()
    for family in results_of:
        of_family = tasks.get(family.slug, ())
        times = [task.frozen_at for task in of_family if task.status == Task.Status.COMPLETED]
        since = sum(task.frozen_at >= min(times) for task in of_family) if times else 0
        answered[family.slug], tasks_by_agent[family.slug] = len(times), since
        if family.external and is_ranked(len(times), since, LEAST_DECISIONS):
            competitors.add(family.slug)
    contents = ranked_contents(results_of, scored, {}, competitors)
    entries = []
    for row in contents.entries:
        slug = row["family"]
        entry = empty_entry(slug, row["display_name"], external=row["external"])
        entry |= subset(row, ("rank_low", "rank_high", *TRADING_FIGURES))
        entry |= {"score": row["return_percent"], "score_ci": row["return_ci"]}
        if row["external"]:
            entry |= {"answered": answered[slug], "asked": tasks_by_agent[slug], **_failures(slug, tasks, attempts)}
        entries.append(entry)
    data = {"cohorts": len(set(chain.from_iterable(results_of.values())))}
    board = _board(entries, competitors, contents.report["pairs"], data, sign=-1)
    external = filter(itemgetter("external"), entries)
    board.report["weeks"] = subset(contents.report["weeks"], map(itemgetter("family"), external))
    return board


def is_ranked(answered: int, tasks: int, least: int) -> bool:
    """Whether an agent answered enough tasks, and enough of those since its first answer, to be ranked."""
    return answered >= least and answered >= LEAST_COVERAGE * tasks


def empty_entry(slug: str, name: str, *, external: bool = False, reference: bool = False) -> dict[str, Any]:
    """The entry of a forecaster of whom nothing is known yet."""
    family = None if reference else slug
    return {
        "forecaster": slug,
        "family": family,
        "display_name": name,
        "external": external,
        "reference": reference,
    } | NOTHING


def _board(
    entries: list[dict[str, Any]], competitors: Collection[str], pairs: Any, data: Any, *, sign: int, key: str = "score"
) -> LeaderboardContents:
    """The entries in the order of a figure, ranked agents and lines first; less is better with a `sign` of 1."""
    figures = [sign * entry[key] for entry in entries if entry["forecaster"] in competitors]
    for entry in entries:
        figure = None if entry[key] is None else sign * entry[key]
        if entry["forecaster"] in competitors and figure is not None:
            rank = entry["rank"] = 1 + sum(rival < figure - ROUNDING for rival in figures)
            if entry["rank_low"] is not None:
                entry["rank_low"], entry["rank_high"] = min(entry["rank_low"], rank), max(entry["rank_high"], rank)
        if entry["asked"]:
            entry["coverage"] = entry["answered"] / entry["asked"]

    def order(entry: dict[str, Any]) -> tuple[Any, ...]:
        figure = entry[key]
        return entry["external"] and entry["rank"] is None, figure is None, sign * (figure or 0), entry["forecaster"]

    return LeaderboardContents(sorted(entries, key=order), {"pairs": pairs, "data": data})


def _failures(slug: str, tasks: Tasks, attempts: Attempts) -> dict[str, int]:
    """How many of an agent's tasks failed or were missed, and how many of its answers were refused or late."""
    counts = {**dict.fromkeys(FAILURES, 0), **attempts.get(slug, {})}
    for task in tasks.get(slug, ()):
        counts["refused"] += task.refusals
        if task.status in counts:
            counts[task.status] += 1
    return counts


def _tasks(tasks: QuerySet[Any], family: str, frozen_at: str, until: datetime | None) -> dict[str, list[AskedTask]]:
    """The tasks frozen by an instant, by family; without those that never were, since nobody could answer them."""
    by_family: dict[str, list[AskedTask]] = defaultdict(list)
    frozen_rows = _frozen_within(published(tasks), frozen_at, until)
    for slug, *columns in frozen_rows.values_list(family, frozen_at, "status", "refusals"):
        by_family[slug].append(AskedTask(*columns))
    return by_family


def _attempts(attempts: QuerySet[Attempt], frozen_at: str, until: datetime | None) -> dict[str, Counter[str]]:
    """How many answers to the tasks frozen by an instant came late, by family."""
    frozen_rows = _frozen_within(published(attempts).filter(kind=Attempt.Kind.LATE).order_by(), frozen_at, until)
    if until is not None:
        frozen_rows = frozen_rows.filter(noted_at__lte=until)
    by_family: dict[str, Counter[str]] = defaultdict(Counter)
    for slug in frozen_rows.values_list("registration__family__slug", flat=True):
        by_family[slug]["late"] += 1
    return by_family


def _frozen_within(rows: QuerySet[Any], frozen_at: str, until: datetime | None) -> QuerySet[Any]:
    frozen_rows = rows.filter(**{f"{frozen_at}__isnull": False})
    if until is not None:
        frozen_rows = frozen_rows.filter(**{f"{frozen_at}__lte": until})
    return frozen_rows
