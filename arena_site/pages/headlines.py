"""The answer to the site's question: who leads a leaderboard, and who is statistically tied with the leader."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from arena_site.pages.filters import count, fraction, score, signed_percent, signed_score
from cohorts.models import Cohort
from scoring.constants import FORECAST, SIGNIFICANCE
from scoring.leaderboard_keys import ranking_interval, ranking_score
from scoring.models import AgentsBoard
from scoring.selectors.claims import LEAST_COHORTS, LEAST_EVENTS, bears_claim
from scoring.selectors.competition import CompetitionIndex, unfinished_ages

MINIMUM_EVENTS = 4
"""Resolved events from which on a leader is named; more are needed to call one the best."""
HEADLINE_PARTS = ("pairs", "data", "market")
"""The parts of a report that the headline of forecasts and the sentence on the market rest on."""
NAMED_TIES = 2
"""Models that a sentence names, such as tied ones; it counts the others."""
MOST_WORDS = 30
"""Words of the sentence on a forecast leaderboard; a longer one names fewer models, or has fewer figures."""
PRICES = "the market’s prices"
"""The words of a prompt condition that a sentence on the market need not repeat."""

Entry = Mapping[str, Any]


class Headline(NamedTuple):
    """The leader of a leaderboard, the entries statistically tied with it, and a sentence that can be quoted.

    `condition` is what the lead depends on: the prompt or the age of the cohorts, and of external agents the track.
    `line` is the sentence on traders without what their own page adds.
    """

    leader: Entry
    tied: Sequence[Entry]
    sentence: str
    condition: str
    line: str = ""


def forecast_headline(
    entries: Sequence[Entry], report: Mapping[str, Any], *, at: datetime, condition: str
) -> Headline | None:
    """The leaders of a forecast leaderboard of a condition, by its report; None below MINIMUM_EVENTS resolved events.

    One model forecasts best only where the tests tell it from every other on LEAST_EVENTS events at least; see
    `tied_with` and `leaders`.
    """
    data = report.get("data", {})
    events = data.get("events", 0)
    ranked = _ranked([entry for entry in entries if ranking_score(entry) is not None])
    if not ranked or events < MINIMUM_EVENTS:
        return None
    leader, *rivals = ranked
    tests = None if leader["ranked_by"] == "adjusted_brier" else report.get("pairs")
    tied = tied_with(leader, rivals, tests, key="forecaster")
    value = f"{ADJUSTED.get(leader['ranked_by'], '')}Brier score {score(ranking_score(leader))}"
    names = leaders(ranked, tied, tests, key="forecaster")
    sentences = []
    if tied:
        basis = f" after {_resolved_questions(data.get('questions', leader['n']))}"
        for named, words in ((NAMED_TIES, basis), (1, basis), (1, "")):
            text = f"{_named(names, named)} lead {condition}; no test tells them apart{words}, {_date(at)}."
            if len(names) == len(ranked):
                tie = _all_tied(ranked, "model")
                if events < LEAST_EVENTS:
                    tie, words = f"{_events(events)} too few to tell the {count(len(ranked))} models apart", ""
                text = f"{tie} {condition} ({_named(names, named)}){words}, {_date(at)}."
            sentences.append(text)
    elif rivals and events < LEAST_EVENTS:
        few = f"{count(events)} resolved events are too few to call one the best"
        for words in (f": {value}", ""):
            sentences.append(f"{leader['display_name']} leads {condition}{words}; {few}, {_date(at)}.")
    else:
        basis = f" on {_resolved_questions(leader['n'])}"
        verb = "forecasts best" if rivals else "is the only model"
        for words in (_interval(ranking_interval(leader)) + basis, basis, ""):
            sentences.append(f"{leader['display_name']} {verb} {condition}: {value}{words}, {_date(at)}.")
    sentence = next((text for text in sentences if len(text.split()) <= MOST_WORDS), sentences[-1])
    return Headline(leader, tied, sentence, condition)


def no_leader_sentence(events: int) -> str:
    """That nobody leads yet, by the number of resolved events."""
    resolved = "no question has resolved"
    if events:
        resolved = f"{count(events)} event{'' if events == 1 else 's'} resolved so far"
    return f"No leader yet: {resolved}; a leader is named from {MINIMUM_EVENTS} on."


ADJUSTED = {"adjusted_brier": "adjusted "}


def trading_headline(
    entries: Sequence[Entry], pairs: Sequence[Mapping[str, Any]], cohorts: Iterable[Cohort], *, at: datetime
) -> Headline | None:
    """The leaders of the trading leaderboard by mean return, with the age of the cohorts that have not ended.

    One model returns most only where the tests tell it from every other over LEAST_COHORTS cohorts at least.
    """
    ranked = _ranked(entries)
    if not ranked:
        return None
    leader, *rivals = ranked
    tied = tied_with(leader, rivals, pairs, key="family")
    number = _cohorts(leader, cohorts, at)
    mean, interval = leader["return_percent"], leader["return_ci"]
    names = leaders(ranked, tied, pairs, key="family")
    highest = f"highest mean return that of {leader['display_name']},"
    if rivals and leader["cohorts"] < LEAST_COHORTS:
        lead = f"Too few cohorts to tell who returns most, {leader['cohorts']} of {LEAST_COHORTS}: {highest}"
        interval = None
    elif tied and len(names) == len(ranked):
        lead = f"{_all_tied(ranked, 'model')} in trading: {highest}"
    elif tied:
        lead = f"{_named(names)} lead in trading; no test tells them apart: {highest}"
    else:
        verb = "returns most" if rivals else "is the only model that trades"
        lead = f"{leader['display_name']} {verb}: mean return"
    sentence = f"{lead} {_mean_return(mean, interval)} over {number}, {_date(at)}."
    line = f"{lead} {signed_percent(mean)} over {_cohort_count(leader)}, paper money."
    return Headline(leader, tied, sentence, f"over {number}", line)


def market_sentence(sides: Iterable[tuple[Sequence[Entry], Mapping[str, Any], str]]) -> str:
    """A line on the models that beat the market's prices, by the corrected tests of each condition.

    A side holds the entries of a condition, its tests by forecaster, and its name in words. Tests on fewer than
    LEAST_EVENTS events bear no claim.

    Empty where no model has a test.
    """
    clauses: list[str] = []
    for entries, tests, condition in sides:
        tested, few, ahead = 0, 0, []
        for entry in entries:
            test = tests.get(entry["forecaster"])
            if entry["reference"] or entry["external"] or test is None or test["p_holm"] is None:
                continue
            if not bears_claim(test):
                few = max(few, test["events"])
                continue
            tested += 1
            if test["p_holm"] < SIGNIFICANCE and test["difference"] > 0:
                ahead.append(entry["display_name"])
        one, several = ("does so", "do so") if clauses else (f"beats {PRICES}", f"beat {PRICES}")
        where = condition.replace(PRICES, "them")
        if ahead:
            models = f"{len(ahead)} of {tested} model{'' if tested == 1 else 's'}"
            clauses.append(f"{models} {one if len(ahead) == 1 else several} {where} ({_named(ahead)})")
        elif tested:
            clauses.append(f"no model is shown to {several} {where}")
        elif few:
            clauses.append(f"{_events(few)} too few to tell who {one} {where}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}, by corrected paired tests." if text else ""


def largest_bet_sentence(entry: Entry) -> str:
    """How much of a model's profit its largest bet makes, and its mean return without it; empty where none is known."""
    mean, without = entry["return_percent"], entry.get("return_without_largest_bet")
    if mean is None or without is None:
        return ""
    name, remainder = entry["display_name"], f"without it the mean return is {signed_percent(without)}."
    if mean <= 0 or without >= mean:
        return f"The largest bet of {name} {'lost' if without >= mean else 'made'} money: {remainder}"
    share = (mean - without) / mean
    part = "more than all" if share > 1 else fraction(share, 0)
    return f"One bet makes {part} of the profit of {name}: {remainder}"


def agents_headline(board: AgentsBoard, competition: CompetitionIndex, *, at: datetime) -> Headline | None:
    """The first external agent of a board, under its prompt condition or by its cohorts; None while none is ranked.

    Tied is who differs from it with a Holm-corrected p of SIGNIFICANCE or more in the paired tests, or has no test.
    """
    ranked = sorted((e for e in board.entries if e["rank"] is not None), key=lambda entry: entry["rank"])
    if not ranked:
        return None
    leader, *rivals = ranked
    pairs = board.report["pairs"]
    tied = tied_with(leader, rivals, pairs, key="forecaster")
    of_track = f"of the {board.track} track"
    if board.protocol == FORECAST:
        conditions = competition.conditions
        condition = f"{of_track} {conditions.phrase(conditions.board())}"
        scope, value = condition, f"{score(leader['score'])}{_interval(leader['score_ci'])}"
        name = "adjusted Brier score"
        if leader.get("ranked_by") == "alpha":
            name, value = "alpha", f"{signed_score(leader['alpha'])}{_signed_interval(leader['alpha_ci'])}"
        basis = f"on {count(leader['answered'])} resolved questions"
    else:
        numbers = {int(number) for number in board.report.get("weeks", {}).get(leader["forecaster"], ())}
        cohorts = [cohort for cohort in competition.cohorts.values() if cohort.number in numbers]
        basis = f"over {_cohorts(leader, cohorts, at)}"
        condition = f"{of_track} {basis}"
        scope, name, value = of_track, "mean return", _mean_return(leader["score"], leader["score_ci"])
    of_value = f"{name} {value} {basis}, {_date(at)}"
    names = leaders(ranked, tied, pairs, key="forecaster")
    if not rivals:
        sentence = f"{leader['display_name']} is the only ranked external agent {scope}: {of_value}."
    elif tied and len(names) == len(ranked):
        sentence = f"{_all_tied(ranked, 'external agent', scope)}; {leader['display_name']} stands first: {of_value}."
    elif tied:
        sentence = f"{_named(names)} lead the external agents {scope}; no test tells them apart: {of_value}."
    elif all(map(bears_claim, _tests_of(leader, pairs))):
        sentence = f"{leader['display_name']} leads the external agents {scope}: {of_value}."
    else:
        sentence = f"Too little data to tell who leads the external agents {scope}, {_date(at)}."
    return Headline(leader, tied, sentence, condition)


def tied_with(
    leader: Entry, rivals: Iterable[Entry], tests: Sequence[Mapping[str, Any]] | None, *, key: str
) -> list[Entry]:
    """The rivals that no test tells from the leader; `key` is the field by which tests name entries.

    Without tests of pairs, as on a past leaderboard or by adjusted scores, those whose rank range includes the first.
    """
    if not tests:
        return [entry for entry in rivals if entry.get("rank_low") in (1, None)]
    return [entry for entry in rivals if not _told_apart(leader, entry, tests, key)]


def leaders(
    ranked: Sequence[Entry], tied: Sequence[Entry], tests: Sequence[Mapping[str, Any]] | None, *, key: str
) -> list[str]:
    """The names of the first and of those tied with it, in order, of whom no test tells any two apart."""
    group = [ranked[0]]
    for entry in tied:
        if not any(_told_apart(entry, other, tests or (), key) for other in group[1:]):
            group.append(entry)
    return [entry["display_name"] for entry in group]


def _told_apart(one: Entry, other: Entry, tests: Iterable[Mapping[str, Any]], key: str) -> bool:
    """Whether the corrected paired test of two entries finds a difference; not where there is no test."""
    names = {one[key], other[key]}
    for test in tests:
        if {test["first"], test["second"]} == names:
            return test["p_holm"] is not None and test["p_holm"] < SIGNIFICANCE
    return False


def _tests_of(leader: Entry, tests: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The paired tests of an entry of the agents' board."""
    return [test for test in tests if leader["forecaster"] in (test["first"], test["second"])]


def _all_tied(ranked: Sequence[Entry], noun: str, scope: str = "") -> str:
    """That no test tells any two of the ranked apart."""
    return f"No test tells the {count(len(ranked))} {noun}s {f'{scope} ' if scope else ''}apart"


def _events(number: int) -> str:
    return f"{count(number)} resolved event{' is' if number == 1 else 's are'}"


def _ranked(entries: Sequence[Entry]) -> list[Entry]:
    """The ranked entries, the first one first; references and external agents are not ranked."""
    ranked = [e for e in entries if not e["external"] and not e.get("reference") and e["rank"] is not None]
    return sorted(ranked, key=lambda entry: entry["rank"])


def _resolved_questions(number: int) -> str:
    return f"{count(number)} resolved question{'' if number == 1 else 's'}"


def _interval(interval: Sequence[float] | None) -> str:
    return f" (95 % interval {score(interval[0])}–{score(interval[1])})" if interval else ""


def _signed_interval(interval: Sequence[float] | None) -> str:
    return f" (95 % interval {signed_score(interval[0])} to {signed_score(interval[1])})" if interval else ""


def _mean_return(mean: float, interval: Sequence[float] | None) -> str:
    """A leader's mean return with its interval, which does not allow for the choice of the highest."""
    alone = ""
    if interval:
        alone = f"95 % interval of it alone {signed_percent(interval[0])} to {signed_percent(interval[1])}, "
    return f"{signed_percent(mean)} ({alone}paper money)"


def _named(names: Sequence[str], number: int = NAMED_TIES) -> str:
    """The first names, and the number of the others."""
    listed = list(names[:number])
    if remainder := len(names) - len(listed):
        listed.append(f"{remainder} other{'' if remainder == 1 else 's'}")
    return f"{', '.join(listed[:-1])}{' and ' if listed[1:] else ''}{listed[-1]}"


def _cohorts(leader: Entry, cohorts: Iterable[Cohort], at: datetime) -> str:
    """The number of the leader's cohorts, with the age of those that have not ended."""
    ages = unfinished_words(unfinished_ages(cohorts, at))
    return f"{_cohort_count(leader)}{f' ({ages})' if ages else ''}"


def _cohort_count(leader: Entry) -> str:
    return f"{count(leader['cohorts'])} cohort{'' if leader['cohorts'] == 1 else 's'}"


def unfinished_words(ages: Sequence[int]) -> str:
    """The number of cohorts that had not ended, and the weeks since the newest and the oldest began, by their ages."""
    if not ages:
        return ""
    span = str(ages[0]) if ages[0] == ages[-1] else f"{ages[0]} to {ages[-1]}"
    return f"{count(len(ages))} unfinished, {span} week{'' if span == '1' else 's'} old"


def _date(at: datetime) -> str:
    utc = at.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y}"
