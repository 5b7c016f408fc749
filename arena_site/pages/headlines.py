"""The answer to the site's question: who leads a leaderboard, and who is statistically tied with the leader."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from arena_site.pages.filters import count, fraction, score, signed_percent
from cohorts.models import Cohort
from scoring.constants import FORECAST, MARKET, SIGNIFICANCE
from scoring.leaderboard_keys import ranking_interval, ranking_score
from scoring.models import AgentsBoard
from scoring.selectors.competition import CompetitionIndex, unfinished_ages

MINIMUM_EVENTS = 4
"""Resolved events from which on a leader is named; more are needed to call one the best."""
HEADLINE_PARTS = ("pairs", "data", "market")
"""The parts of a report that the headline of forecasts rests on."""
NAMED_TIES = 2
"""Models that a sentence names, such as tied ones; it counts the others."""

Entry = Mapping[str, Any]


class Headline(NamedTuple):
    """The leader of a leaderboard, the entries statistically tied with it, and a sentence that can be quoted.

    `condition` is what the lead depends on: the prompt or the age of the cohorts, and of external agents the track.
    """

    leader: Entry
    tied: Sequence[Entry]
    sentence: str
    condition: str


def forecast_headline(
    entries: Sequence[Entry], report: Mapping[str, Any], *, at: datetime, condition: str
) -> Headline | None:
    """The first model of a leaderboard of a condition, with its report; None below MINIMUM_EVENTS resolved events.

    It forecasts best if it beats a rival on more events than that; else it only has the lowest score so far. Tied is
    who differs from it with a Holm-corrected p of SIGNIFICANCE or more in the paired tests; where those were not made,
    as for a past leaderboard, whose rank range includes the first rank.
    """
    events, pairs = report.get("data", {}).get("events", 0), report.get("pairs", [])
    ranked = _ranked([entry for entry in entries if ranking_score(entry) is not None])
    if not ranked or events < MINIMUM_EVENTS:
        return None
    leader, *rivals = ranked
    if pairs:
        tied = _tied(leader, rivals, pairs, key="forecaster")
    else:
        tied = [entry for entry in rivals if entry["rank_low"] in (1, None)]
    market = next((entry for entry in entries if entry["forecaster"] == MARKET and entry["brier"] is not None), None)
    against = _against_market(report.get("market", {}).get(leader["forecaster"]), market)
    name = f"{ADJUSTED.get(leader['ranked_by'], '')}Brier score"
    value = f"{score(ranking_score(leader))} ({_interval(ranking_interval(leader))}lower is better)"
    basis = f"on {count(leader['n'])} resolved questions"
    if events > MINIMUM_EVENTS and len(tied) < len(rivals):
        sentence = (
            f"{leader['display_name']} forecasts best {condition} as of {_date(at)}: its {name} of {value} {basis}"
            f" {against}{' and ' if against else ''}{_ties(tied, len(rivals))}."
        )
    else:
        sentence = (
            f"{leader['display_name']} has the lowest {name} so far {condition} as of {_date(at)}: {value} {basis}"
            f"{', which ' if against else ''}{against}; no model is shown to be best."
        )
    return Headline(leader, tied, sentence, condition)


ADJUSTED = {"adjusted_brier": "adjusted "}


def trading_headline(
    entries: Sequence[Entry], pairs: Sequence[Mapping[str, Any]], cohorts: Iterable[Cohort], *, at: datetime
) -> Headline | None:
    """The model of the highest mean return, with the age of the cohorts that have not ended.

    Tied is who differs from it with a Holm-corrected p of SIGNIFICANCE or more in the paired tests, or has no test.
    """
    ranked = _ranked(entries)
    if not ranked:
        return None
    leader, *rivals = ranked
    tied = _tied(leader, rivals, pairs, key="family")
    number = _cohorts(leader, cohorts, at)
    mean = _mean_return(leader["return_percent"], leader["return_ci"])
    if len(tied) < len(rivals):
        sentence = (
            f"{leader['display_name']} earns most as of {_date(at)}: its mean return of {mean} over {number}"
            f" {_ties(tied, len(rivals))}."
        )
    else:
        sentence = (
            f"{leader['display_name']} has the highest mean return so far as of {_date(at)}: {mean} over {number};"
            " no model is shown to earn most."
        )
    return Headline(leader, tied, sentence, f"over {number}")


def market_sentence(sides: Iterable[tuple[Sequence[Entry], Mapping[str, Any], str]]) -> str:
    """A sentence on the models that beat the market's prices, by the corrected tests of each condition.

    A side holds the entries of a condition, its tests by forecaster, and its name in words.

    Empty where no model has a test.
    """
    clauses: list[str] = []
    for entries, tests, condition in sides:
        tested, ahead = 0, []
        for entry in entries:
            test = tests.get(entry["forecaster"])
            if entry["reference"] or entry["external"] or test is None or test["p_holm"] is None:
                continue
            tested += 1
            if test["p_holm"] < SIGNIFICANCE and test["difference"] > 0:
                ahead.append(entry["display_name"])
        rival = "them" if clauses else "the market’s prices"
        if ahead:
            verb = "beats" if len(ahead) == 1 else "beat"
            models = f"{len(ahead)} of {tested} model{'' if tested == 1 else 's'}"
            clauses.append(f"{models} {verb} {rival} {condition} ({_named(ahead)})")
        elif tested:
            clauses.append(f"no model is shown to beat {rival} {condition}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}, by paired tests corrected for the number of models." if text else ""


def largest_bet_sentence(entry: Entry) -> str:
    """How much of a model's profit its largest bet makes, and its mean return without it; empty where none is known."""
    mean, without = entry["return_percent"], entry.get("return_without_largest_bet")
    if mean is None or without is None:
        return ""
    remainder = f"without it the mean return is {signed_percent(without)}."
    if mean <= 0 or without >= mean:
        return f"Its largest bet {'lost' if without >= mean else 'made'} money: {remainder}"
    share = (mean - without) / mean
    part = "more than all" if share > 1 else fraction(share, 0)
    return f"One bet makes {part} of its profit: {remainder}"


def agents_headline(board: AgentsBoard, competition: CompetitionIndex, *, at: datetime) -> Headline | None:
    """The first external agent of a board, under its prompt condition or by its cohorts; None while none is ranked.

    Tied is who differs from it with a Holm-corrected p of SIGNIFICANCE or more in the paired tests, or has no test.
    """
    ranked = sorted((e for e in board.entries if e["rank"] is not None), key=lambda entry: entry["rank"])
    if not ranked:
        return None
    leader, *rivals = ranked
    tied = _tied(leader, rivals, board.report["pairs"], key="forecaster")
    of_track = f"of the {board.track} track"
    if board.protocol == FORECAST:
        conditions = competition.conditions
        condition = f"{of_track} {conditions.phrase(conditions.board())}"
        scope, lead, superlative = condition, "lowest adjusted Brier score", "be best"
        value = f"{score(leader['score'])} ({_interval(leader['score_ci'])}lower is better)"
        name = "adjusted Brier score"
        basis = f"on {count(leader['answered'])} resolved questions"
    else:
        numbers = {int(number) for number in board.report.get("weeks", {}).get(leader["forecaster"], ())}
        cohorts = [cohort for cohort in competition.cohorts.values() if cohort.number in numbers]
        basis = f"over {_cohorts(leader, cohorts, at)}"
        condition = f"{of_track} {basis}"
        scope, lead, superlative = of_track, "highest mean return", "earn most"
        name, value = "mean return", _mean_return(leader["score"], leader["score_ci"])
    if len(tied) < len(rivals):
        sentence = (
            f"{leader['display_name']} leads the external agents {scope} as of {_date(at)}: its {name} of {value}"
            f" {basis} {_ties(tied, len(rivals), 'agent')}."
        )
    else:
        sentence = (
            f"{leader['display_name']} has the {lead} so far among the external agents {scope} as of {_date(at)}:"
            f" {value} {basis}; no agent is shown to {superlative}."
        )
    return Headline(leader, tied, sentence, condition)


def _tied(leader: Entry, rivals: Iterable[Entry], pairs: Sequence[Mapping[str, Any]], *, key: str) -> list[Entry]:
    """The rivals that no test tells from the leader; `key` is the field by which tests name entries."""
    tests = {frozenset((pair["first"], pair["second"])): pair["p_holm"] for pair in pairs}
    tied = []
    for entry in rivals:
        p = tests.get(frozenset((leader[key], entry[key])))
        if p is None or p >= SIGNIFICANCE:
            tied.append(entry)
    return tied


def _ranked(entries: Sequence[Entry]) -> list[Entry]:
    """The ranked entries, the first one first; references and external agents are not ranked."""
    ranked = [e for e in entries if not e["external"] and not e.get("reference") and e["rank"] is not None]
    return sorted(ranked, key=lambda entry: entry["rank"])


def _interval(interval: Sequence[float] | None) -> str:
    return f"95 % interval {score(interval[0])}–{score(interval[1])}, " if interval else ""


def _mean_return(mean: float, interval: Sequence[float] | None) -> str:
    """A leader's mean return with its interval, which does not allow for the choice of the highest."""
    alone = ""
    if interval:
        alone = f"95 % interval of it alone {signed_percent(interval[0])} to {signed_percent(interval[1])}, "
    return f"{signed_percent(mean)} ({alone}paper money)"


def _ties(tied: Sequence[Entry], rivals: int, competitor: str = "model") -> str:
    if not tied:
        return f"is significantly better than that of every other {competitor}"
    if len(tied) == rivals > NAMED_TIES:
        return f"is statistically tied with those of all {rivals} others"
    return f"is statistically tied with those of {_named([entry['display_name'] for entry in tied])}"


def _named(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    listed = list(names[:NAMED_TIES])
    if remainder := len(names) - len(listed):
        listed.append(f"{remainder} other{'' if remainder == 1 else 's'}")
    return f"{', '.join(listed[:-1])}{' and ' if listed[1:] else ''}{listed[-1]}"


def _cohorts(leader: Entry, cohorts: Iterable[Cohort], at: datetime) -> str:
    """The number of the leader's cohorts, with the age of those that have not ended."""
    ages = unfinished_words(unfinished_ages(cohorts, at))
    return f"{count(leader['cohorts'])} cohort{'' if leader['cohorts'] == 1 else 's'}{f' ({ages})' if ages else ''}"


def unfinished_words(ages: Sequence[int]) -> str:
    """The number of cohorts that had not ended, and the weeks since the newest and the oldest began, by their ages."""
    if not ages:
        return ""
    span = str(ages[0]) if ages[0] == ages[-1] else f"{ages[0]} to {ages[-1]}"
    return f"{count(len(ages))} unfinished, {span} week{'' if span == '1' else 's'} old"


def _against_market(test: Mapping[str, Any] | None, market: Entry | None) -> str:
    """How the leader compares with the market's prices on the same questions, by the corrected test."""
    if market is None or test is None or test["p_holm"] is None:
        return ""
    verb = "does not differ significantly from"
    if test["p_holm"] < SIGNIFICANCE:
        verb = "beats" if test["difference"] > 0 else "trails"
    return f"{verb} the market’s prices ({score(ranking_score(market))})"


def _date(at: datetime) -> str:
    utc = at.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y}"
