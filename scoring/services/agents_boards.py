"""The boards of external agents: ranked by track, protocol and period, with the models beside them.

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

from agents.models import Agent, Attempt, Decision, Elicitation, Family, Forecast, Task
from agents.sealing import respecting_seals
from cohorts.conditions import stored_conditions
from forecast_rank import Settings, rank_panel
from foundation.bulk import subset
from scoring.constants import (
    AGENT_PERIODS,
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
from scoring.services.forecast_inputs import inputs_version
from scoring.services.forecast_panels import (
    ResolvedEntry,
    Selection,
    family_names,
    joint_panel,
    panels,
    resolved_entries,
    selection_families,
)
from scoring.services.forecast_ranking import REFERENCE_NAMES, ROUNDING, questions_answered
from scoring.services.scored_bets import bets_by_family, score_fields
from scoring.services.trading_leaderboards import (
    CohortResult,
    LeaderboardContents,
    board_participants,
    cohort_results,
    ranked_contents,
    store_leaderboards,
)

METRICS = ("brier", "alpha", "adjusted_brier")
FORECAST_FIGURES = ("brier", "brier_ci", "alpha", "alpha_ci")
TRADING_FIGURES = ("cohorts", "total_value", "pnl", "win_rate", "resolved_bets")
FAILURES = ("failed", "missed", "refused", "late", "reported")
NOTHING: dict[str, Any] = dict.fromkeys(
    ("rank", "rank_low", "rank_high", "answered", "asked", "coverage", "score", "score_ci", "bss_uniform",
     *FORECAST_FIGURES, *TRADING_FIGURES, *FAILURES)
)  # fmt: skip
"""An entry of which nothing is known: a board of one protocol has no figures of the other."""
LINES = subset(REFERENCE_NAMES, (MARKET, UNIFORM))


class BoardKey(NamedTuple):
    """The selection that a board shows."""

    track: str
    protocol: str
    period: str = "ALL"


class AskedTask(NamedTuple):
    """A decision or a batch of questions that was put to an agent."""

    frozen_at: datetime
    status: str
    refusals: int


Tasks = Mapping[str, Sequence[AskedTask]]
"""The tasks put to each family, by slug."""
Attempts = Mapping[str, Mapping[str, int]]
"""How many answers came late and how many failures were reported, by slug."""


def refresh_agents_boards(*, at: datetime) -> int:
    """Stores the boards of each track that has agents; returns how many."""
    with respecting_seals(at=at):
        boards = {key: agents_board(key, at=at) for key in board_keys()}
    store_leaderboards(boards, at=at, model=AgentsBoard)
    return len(boards)


def board_keys() -> list[BoardKey]:
    """The boards of all tracks with agents."""
    tracks = Family.objects.filter(external=True).order_by("track").values_list("track", flat=True).distinct()
    return list(starmap(BoardKey, product(tracks, (FORECAST, TRADING), AGENT_PERIODS)))


def agents_board(key: BoardKey, *, at: datetime | None = None, past: bool = False) -> LeaderboardContents:
    """A board of the period that ends at an instant (None: of all time); `past` leaves out what came later."""
    until = at if past else None
    span = AGENT_PERIODS[key.period]
    since = None if span is None or at is None else at - span
    compute = _forecast_board if key.protocol == FORECAST else _trading_board
    board = compute(key.track, since, until)
    board.report["inputs"] = _inputs(key.protocol)
    return board


def _inputs(protocol: str) -> dict[str, Any]:
    """Numbers that tell whether the facts behind a board are still those that it was made from."""
    tasks: QuerySet[Any] = Decision.objects.filter(agent__family__external=True)
    if protocol == FORECAST:
        tasks = Elicitation.objects.filter(family__external=True)
    by_status = tasks.order_by("status").values_list("status").annotate(Count("pk"), Sum("refusals"))
    attempts = list(Attempt.objects.order_by("origin", "kind").values_list("origin", "kind").annotate(Count("pk")))
    inputs = {"tasks": list(by_status), "attempts": attempts}
    return inputs | (inputs_version(Selection(stored_conditions().board())) if protocol == FORECAST else {})


def _forecast_board(track: str, since: datetime | None, until: datetime | None) -> LeaderboardContents:
    selection = Selection(stored_conditions().board(), until=until, since=since)
    of_track = selection_families(selection).filter(external=True, track=track).order_by("pk")
    agents = dict(of_track.values_list("slug", "display_name"))
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, family__slug__in=list(agents)).order_by()
    first = dict(forecasts.values_list("family__slug").annotate(Min("entry")))
    tasks = selection.elicitations().filter(family__slug__in=list(agents))
    frozen_at = "batch__question_set__frozen_at"
    tasks_asked = _tasks(tasks, "family__slug", frozen_at, since, until)
    attempts = _attempts(Attempt.objects.filter(batch__arm=selection.arm), frozen_at, since, until)
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
    """The board over the entries that one of the agents answered, by the adjusted Brier score.

    Models and agents are fitted together, so that agents who answered different questions are compared by what the
    models made of both. `models` and `agents` are display names by slug, `first_entries` the first that each answered.
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
    names = {**models, **agents, **LINES}
    entries = []
    for slug, figures in (report["forecasters"] | report["references"]).items():
        if slug not in names or not (figures["n"] or slug in agents):
            continue
        ranges = figures.get("rank_ranges", {}).get("adjusted_brier") if slug in competitors else None
        low, high = ranges or (None, None)
        entry = empty_entry(slug, names[slug], external=slug in agents, reference=slug in LINES)
        entry |= {"rank_low": low, "rank_high": high, "answered": answered[slug]}
        entry |= {"score": figures.get("adjusted_brier"), "score_ci": figures.get("adjusted_brier_ci")}
        entry |= {name: figures.get(name) for name in ("bss_uniform", *FORECAST_FIGURES)}
        if slug in agents:
            entry |= {"asked": questions_by_agent[slug], **_failures(slug, tasks, attempts)}
        entries.append(entry)
    data = report["data"] | {"questions": len({entry.question for entry in shared})}
    return _board(entries, competitors, report["pairs"], data, sign=1)


def _trading_board(track: str, since: datetime | None, until: datetime | None) -> LeaderboardContents:
    participants, values = board_participants(ALL_METHODOLOGIES, until)
    by_cohort: dict[int, list[Agent | AgentSummary]] = defaultdict(list)
    for agent in participants:
        if agent.family.track in ("", track) and (since is None or agent.cohort.week_start >= since):
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
    scored = {family: score_fields(bets[family]) for family in set(map(attrgetter("family.pk"), members))}
    decisions = Decision.objects.filter(agent__in=agents, agent__family__external=True).order_by()
    tasks = _tasks(decisions, "agent__family__slug", "universe__frozen_at", since, until)
    attempts = _attempts(Attempt.objects.filter(agent__in=agents), "universe__frozen_at", since, until)
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
    entries: list[dict[str, Any]], competitors: Collection[str], pairs: Any, data: Any, *, sign: int
) -> LeaderboardContents:
    """The entries in the order of their scores, ranked agents and lines first; less is better with a `sign` of 1."""
    scores = [sign * entry["score"] for entry in entries if entry["forecaster"] in competitors]
    for entry in entries:
        score = None if entry["score"] is None else sign * entry["score"]
        if entry["forecaster"] in competitors and score is not None:
            entry["rank"] = 1 + sum(rival_score < score - ROUNDING for rival_score in scores)
        if entry["asked"]:
            entry["coverage"] = entry["answered"] / entry["asked"]

    def order(entry: dict[str, Any]) -> tuple[Any, ...]:
        score = entry["score"]
        return entry["external"] and entry["rank"] is None, score is None, sign * (score or 0), entry["forecaster"]

    return LeaderboardContents(sorted(entries, key=order), {"pairs": pairs, "data": data})


def _failures(slug: str, tasks: Tasks, attempts: Attempts) -> dict[str, int]:
    """How many of an agent's tasks failed or were missed, of its answers refused or late, and what it reported."""
    counts = {**dict.fromkeys(FAILURES, 0), **attempts.get(slug, {})}
    for task in tasks.get(slug, ()):
        counts["refused"] += task.refusals
        if task.status in counts:
            counts[task.status] += 1
    return counts


def _tasks(
    tasks: QuerySet[Any], family: str, frozen_at: str, since: datetime | None, until: datetime | None
) -> dict[str, list[AskedTask]]:
    """The tasks frozen in a period, by family; without those that never were, since nobody could answer them."""
    by_family: dict[str, list[AskedTask]] = defaultdict(list)
    frozen_rows = _frozen_within(tasks, frozen_at, since, until)
    for slug, *columns in frozen_rows.values_list(family, frozen_at, "status", "refusals"):
        by_family[slug].append(AskedTask(*columns))
    return by_family


def _attempts(
    attempts: QuerySet[Attempt], frozen_at: str, since: datetime | None, until: datetime | None
) -> dict[str, Counter[str]]:
    """How many answers to the tasks frozen in a period came late, and how many failures were reported, by family."""
    frozen_rows = _frozen_within(attempts.order_by(), frozen_at, since, until)
    if until is not None:
        frozen_rows = frozen_rows.filter(noted_at__lte=until)
    by_family: dict[str, Counter[str]] = defaultdict(Counter)
    for slug, origin, kind in frozen_rows.values_list("registration__family__slug", "origin", "kind"):
        if origin == Attempt.Origin.AGENT:
            by_family[slug]["reported"] += 1
        elif kind == Attempt.Kind.LATE:
            by_family[slug]["late"] += 1
    return by_family


def _frozen_within(
    rows: QuerySet[Any], frozen_at: str, since: datetime | None, until: datetime | None
) -> QuerySet[Any]:
    frozen_rows = rows.filter(**{f"{frozen_at}__isnull": False})
    if since is not None:
        frozen_rows = frozen_rows.filter(**{f"{frozen_at}__gte": since})
    if until is not None:
        frozen_rows = frozen_rows.filter(**{f"{frozen_at}__lte": until})
    return frozen_rows
