"""Pitfalls of evaluating forecasters, and what the arena does about each, with figures of its own data.

The list is that of Paleka, Goel, Geiping and Tramèr, "Pitfalls in evaluating language model forecasters" (arXiv
2506.00723), in its order, and behind it one that concerns batches of questions.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from django.db.models import Count, DurationField, ExpressionWrapper, F, Min, Q

from markets.models import EvidenceSnippet, Question, QuestionEntry, QuestionSet
from markets.selectors.sibling_questions import sibling_counts
from scoring.constants import SIGNIFICANCE
from scoring.leaderboard_keys import cached_by_leaderboards
from scoring.selectors.competition import competition_index
from scoring.selectors.forecast_boards import forecast_board, report_part

NEWEST_SETS, NEWEST_QUESTIONS = 60, 1_000
"""How far back the figures go that take long over all."""
GUARDED, PARTLY, UNGUARDED = "guarded", "partly guarded", "not guarded"


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A pitfall, whether the arena guards against it, what it does, and a figure of its own data.

    code, table : the file that does it, and the table or page with which the figure can be recomputed
    """

    name: str
    guard: str
    problem: str
    answer: str
    figure: str
    code: str
    table: str


def pitfalls() -> list[Pitfall]:
    """All pitfalls with their figures now, cached until a leaderboard changes."""
    stored = cached_by_leaderboards("pitfalls", lambda: list(map(asdict, _pitfalls())))
    return [Pitfall(**values) for values in stored]


def _pitfalls() -> list[Pitfall]:
    by_status = dict(Question.objects.order_by().values_list("status").annotate(Count("pk")))
    question_count = sum(by_status.values())
    newest = QuestionEntry.objects.filter(question_set__in=_newest_sets())
    late = newest.filter(question__closed_at__lt=F("question_set__frozen_at")).count()
    return [
        Pitfall(
            "Logical leakage", PARTLY,
            "A question that is chosen because it has resolved tells something of its answer.",
            "Questions are frozen while their markets are open, by volume and closing date alone, and all of them stay "
            "on record. Boards score those that have resolved so far, so that early resolutions come first; a market "
            "that an agent holds is asked on Sundays even if it has closed and awaits its resolution.",
            f"Of {question_count:,} questions asked, {by_status.get('resolved', 0):,} have resolved, "
            f"{by_status.get('open', 0) + by_status.get('closed', 0):,} are pending and "
            f"{by_status.get('cancelled', 0):,} were cancelled. In the newest {NEWEST_SETS} sets {late:,} were "
            "asked after their close.",
            "markets/services/questions.py", "questions",
        ),
        Pitfall(
            "Questions written after the event", GUARDED,
            "Questions made from later news over-represent what happened.",
            "Every question is a market that a venue had opened before; none is written by the arena or from news.",
            _age_of_questions(), "markets/selectors/question_candidates.py", "markets",
        ),
        Pitfall(
            "Unreliable date-restricted retrieval", PARTLY,
            "Search engines return pages that were changed, or that rank high, because of what happened later.",
            "Live evidence is retrieved before prices are frozen, hashed, and the same for every model; a replay takes "
            "stored texts alone. What states an outcome leaves the boards. A missing date is shown, not refused.",
            _evidence(), "markets/services/evidence.py", "evidence",
        ),
        Pitfall(
            "Reliance on knowledge cut-offs", PARTLY,
            "A stated cut-off is no upper bound of what a model knows.",
            "Forecasts are made live, before anyone knows the outcome. A board can be restricted to questions created "
            "after each release’s cut-off, by the catalogue or as declared. Whether a cut-off is true is not tested.",
            _cutoffs(), "scoring/services/cutoff_report.py", "releases, markets",
        ),
        Pitfall(
            "Piggybacking on human forecasts", GUARDED,
            "A model that copies the market’s price looks as good as the crowd.",
            "Each model is scored against the price that it was shown, and answers the same questions without prices.",
            _market(), "scoring/services/forecast_ranking.py",
            "forecast_scores",
        ),
        Pitfall(
            "Gaming by correlated bets", PARTLY,
            "With outcomes that depend on each other, the boldest of many forecasters leads by luck.",
            "Scores are proper; intervals, ties and rank ranges resample whole events and are corrected for the number "
            "of pairs. Events of one cause count as independent, which is not guarded against.",
            _largest_event(), "packages/forecast_rank/src/forecast_rank/metrics/uncertainty.py", "questions",
        ),
        Pitfall(
            "Skewed question distribution", PARTLY,
            "Venues list what bettors like: a score there says little about other fields.",
            "A category has at most a share of a day’s questions while others are left, and has its own board. What no "
            "venue lists is not asked.",
            _largest_category(), "markets/question_selection.py", "questions",
        ),
        Pitfall(
            "Training on what is evaluated", UNGUARDED,
            "A model that was trained on earlier outcomes of a benchmark is tested on a shorter horizon than it seems.",
            "Outcomes and datasets are public once questions have resolved, and nothing keeps a maker from training on "
            "them. Later questions are new to everybody; rehearsals on past spans are never part of the arena.",
            _horizon(), "scoring/services/datasets.py", "questions",
        ),
        Pitfall(
            "Questions that give each other away", PARTLY,
            "Two questions of one event in one request help to answer each other.",
            "The day’s rule selects one question per event. Markets that agents trade are added on Sundays and may "
            "share an event; each run counts them. Dependence between events is not found.",
            _siblings(), "markets/selectors/sibling_questions.py", "question_entries",
        ),
    ]  # fmt: skip


def _newest_sets() -> list[int]:
    return list(QuestionSet.objects.order_by("-pk").values_list("pk", flat=True)[:NEWEST_SETS])


def _age_of_questions() -> str:
    newest = Question.objects.filter(pk__in=Question.objects.order_by("-pk").values("pk")[:NEWEST_QUESTIONS])
    dated = newest.order_by().annotate(created=Min("options__outcome__market__created_at"))
    ages = []
    for created, first_asked_at in dated.filter(created__isnull=False).values_list("created", "first_asked_at"):
        ages.append((first_asked_at - created).total_seconds() / 86_400)
    if not ages:
        return "No venue has dated a question yet."
    younger = sum(age < 0 for age in ages)
    return (
        f"The median of the newest {len(ages):,} questions was {median(ages):,.1f} days old when it was first asked; "
        f"{younger:,} were asked before their venue’s date of creation."
    )


def _evidence() -> str:
    snippets = EvidenceSnippet.objects.aggregate(
        number=Count("pk"),
        undated=Count("pk", filter=Q(published_at=None)),
        states=Count("pk", filter=Q(states_outcome=True)),
    )
    dropped: Counter[str] = Counter()
    for reasons in QuestionSet.objects.exclude(evidence_dropped={}).values_list("evidence_dropped", flat=True):
        dropped.update(reasons)
    if not snippets["number"]:
        return "No condition with evidence has been asked."
    return (
        f"{snippets['number']:,} snippets, of which {snippets['undated']:,} have no date and {snippets['states']:,} "
        f"state an outcome; {sum(dropped.values()):,} texts were dropped."
    )


def _cutoffs() -> str:
    counts: Counter[str] = Counter()
    board, _ = report_part("after_cutoff", arm="")
    for of_family in board["report"].get("cutoffs", {}).values():
        counts.update(of_family)
    if not counts:
        return "No question has resolved yet."
    return (
        f"Of {sum(counts.values()):,} scored forecasts, {counts['after']:,} are on questions created after the "
        f"cut-off, {counts['before']:,} on older ones, and for {counts['unknown']:,} a date is unknown."
    )


def _market() -> str:
    """How many models beat the price with and without it in their prompts, by the stored tests of both boards."""
    conditions = competition_index().conditions
    pairs = conditions.pairs_apart("prices")
    counts = []
    for arm in pairs[0] if pairs else [conditions.board()]:
        tests = forecast_board(arm=arm, parts=("market",)).report.get("market") or {}
        results = [test for test in tests.values() if test["p_holm"] is not None]
        better = sum(test["p_holm"] < SIGNIFICANCE and test["difference"] > 0 for test in results)
        counts.append(f"{better} of {len(results)} {conditions.phrase(arm)}")
    return f"Models shown to beat the price: {', '.join(counts)}."


def _largest_event() -> str:
    resolved = Question.objects.filter(status=Question.Status.RESOLVED).order_by()
    counts = list(resolved.values_list("event_key").annotate(Count("pk")))
    if not counts:
        return "No question has resolved yet."
    total, largest = sum(number for _, number in counts), max(number for _, number in counts)
    return f"{total:,} resolved questions belong to {len(counts):,} events; the largest has {largest:,}."


def _largest_category() -> str:
    counts: Sequence[tuple[str, int]] = list(
        Question.objects.order_by().values_list("category").annotate(number=Count("pk")).order_by("-number", "category")
    )
    if not counts:
        return "No question has been asked yet."
    total = sum(number for _, number in counts)
    name, largest = counts[0]
    return f"{100 * largest / total:.0f} % of {total:,} questions are of the largest category, {name or 'none stated'}."


def _horizon() -> str:
    entries = QuestionEntry.objects.filter(question__status=Question.Status.RESOLVED, question__closed_at__isnull=False)
    open_time = ExpressionWrapper(F("question__closed_at") - F("question_set__frozen_at"), DurationField())
    times = list(entries.order_by("-pk").values_list(open_time, flat=True)[:NEWEST_QUESTIONS])
    if not times:
        return "No question has resolved yet."
    days = median(duration.total_seconds() for duration in times) / 86_400
    return f"The newest {len(times):,} of the questions asked and resolved closed after a median of {days:,.1f} days."


def _siblings() -> str:
    counts = sibling_counts(_newest_sets())
    return (
        f"In the newest {NEWEST_SETS} sets, {counts.siblings:,} of {counts.questions:,} questions share their event "
        f"with another of their batch, in {counts.batches_with_siblings:,} of {counts.batches:,} batches; "
        f"{counts.nested:,} are nested thresholds."
    )
