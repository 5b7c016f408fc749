"""The stored forecast leaderboards by arm, methodology and category, computed after a change."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from foundation.bulk import mappings_by
from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.leaderboard_keys import LeaderboardKey, arms_asked, versions_in_play
from scoring.models import Leaderboard, QuestionDifficulty
from scoring.selectors.forecast_panels import ResolvedEntry, Selection, family_names, resolved_entries
from scoring.services.condition_differences import condition_report
from scoring.services.forecast_inputs import (
    NO_PARTICIPATION,
    compares_conditions,
    inputs_version,
    is_current,
    is_fit_due,
    participation_by_family,
    refused_forecasts,
)
from scoring.services.forecast_ranking import (
    AVERAGED,
    FITTED,
    SLOW_FIGURES,
    SLOW_NOTE,
    SlowFits,
    forecast_leaderboard,
    rank_agreement,
    slow_fits,
)
from scoring.services.forecasts_and_trades import family_figures, forecast_bets, stake_points
from scoring.services.market_record import market_record
from scoring.services.report_parts import report_parts
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboards


def refresh_forecast_leaderboards(*, at: datetime, refit: bool = True) -> int:
    """Stores the leaderboards of every methodology, arm and category whose forecasts, scores or bets have changed.

    Without `refit`, leaderboards by category and slow fits are only computed where there are none yet, since the job
    runs every hour. With it, slow fits of many forecasts are repeated daily, or as soon as more than 1 % are new.
    Returns how many leaderboards it stored.
    """
    selections = leaderboard_selections()
    return sum(_refresh(selection, versions, at=at, refit=refit) for selection, versions in selections)


def leaderboard_selections() -> Iterator[tuple[Selection, list[str]]]:
    """Each selection with the methodologies its leaderboards are stored under; a single one shares those of all."""
    versions = versions_in_play(FORECAST)
    for arm in arms_asked():
        if len(versions) == 1:
            yield Selection(arm), [ALL_METHODOLOGIES, *versions]
        else:
            yield from ((Selection(arm, version), [version]) for version in (ALL_METHODOLOGIES, *versions))


def _refresh(selection: Selection, versions: Sequence[str], *, at: datetime, refit: bool) -> int:
    """Stores the leaderboards of one arm under each of `versions`, which share them; returns how many."""
    inputs, rows = inputs_version(selection), stored_leaderboards(selection.arm, versions[0])
    before, stored = rows.filter(category="").first(), dict(rows.values_list("category", "report__inputs"))
    has_fits = before is not None and before.report.get("fitted") is not None
    slow = is_fit_due(before, inputs, at=at) if refit else not has_fits
    current, resolved = set(), set()
    for category, stored_inputs in stored.items():
        if is_current(category, stored_inputs, inputs):
            current.add(category)
    for category, category_inputs in inputs["categories"].items():
        if category and "resolved" in category_inputs:
            resolved.add(category)
    if "" in current and (not refit or (not slow and current >= resolved)):
        return 0
    omitted = current if refit else stored.keys() - {""}
    leaderboards, difficulties = compute_forecast_leaderboards(
        selection, inputs, before, at=at, slow=slow, omitted=omitted
    )
    by_key = {}
    for version, category in product(versions, leaderboards):
        by_key[LeaderboardKey(FORECAST, version, selection.arm, category)] = leaderboards[category]
    with transaction.atomic():
        store_leaderboards(by_key, at=at)
        if slow and versions[0] == ALL_METHODOLOGIES:
            store_difficulties(selection.arm, difficulties)
    return len(by_key)


def store_difficulties(arm: str, difficulties: Sequence[QuestionDifficulty]) -> None:
    """Replaces the difficulties of an arm's questions."""
    with transaction.atomic():
        QuestionDifficulty.objects.filter(arm=arm).delete()
        QuestionDifficulty.objects.bulk_create(difficulties, batch_size=500)


def compute_forecast_leaderboards(
    selection: Selection,
    inputs: Mapping[str, Any],
    before: Leaderboard | None,
    *,
    at: datetime,
    slow: bool,
    omitted: Collection[str] = (),
) -> tuple[dict[str, LeaderboardContents], list[QuestionDifficulty]]:
    """The leaderboards of an arm by category, but the `omitted` ones, and the difficulties of its questions.

    Without `slow`, the results of the slow fits are those of the leaderboard `before`, and there are no difficulties.
    With `slow`, an omitted leaderboard over all categories is part of the result: the one `before`, with new results
    of the slow fits.
    """
    unchanged = before if "" in omitted else None
    resolved = resolved_entries(selection, without=omitted if unchanged and not slow else ())
    families, externals = family_names(selection), family_names(selection, external=True)
    by_category: dict[str, list[ResolvedEntry]] = defaultdict(list)
    for entry in resolved:
        if entry.category not in omitted:
            by_category[entry.category].append(entry)
    leaderboards = _of_categories(selection, by_category, families, externals)
    for category, contents in leaderboards.items():
        contents.report["inputs"] = inputs["categories"].get(category)
    slow = slow and bool(resolved)
    if unchanged is None:
        leaderboards[""] = _over_categories(selection, resolved, families, externals)
        leaderboards[""].report["inputs"] = inputs
        if before and not slow:
            _copy_slow_figures(leaderboards[""], before)
    elif slow:
        leaderboards[""] = LeaderboardContents(unchanged.entries, unchanged.report)
    if not slow:
        return leaderboards, []
    fits = slow_fits(resolved, families, externals)
    _add_fits(leaderboards[""], fits)
    leaderboards[""].report.update(fitted=inputs["resolved"], fitted_at=at.isoformat())
    difficulties = []
    for question, figures in fits.questions.items():
        if figures["difficulty"] is not None:
            difficulties.append(QuestionDifficulty(question_id=int(question), arm=selection.arm, **figures))
    return leaderboards, difficulties


def _over_categories(
    selection: Selection,
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
) -> LeaderboardContents:
    """The leaderboard over all categories, without slow fits."""
    leaderboard = forecast_leaderboard(resolved, families, externals, metrics=(*AVERAGED, *FITTED))
    bets = forecast_bets(selection.arm, selection.methodology)
    leaderboard.report.update(
        fitted=None, fitted_at=None, forecasts_and_trades=family_figures(bets), stakes=stake_points(bets)
    )
    leaderboard.report.update(market_record(resolved, families))
    leaderboard.report.update(report_parts(selection, resolved, families))
    if compares_conditions(selection):
        leaderboard.report["conditions"] = condition_report()
    participation = participation_by_family(selection)
    for entry in leaderboard.entries:
        entry |= dict.fromkeys(NO_PARTICIPATION) if entry["reference"] else participation[entry["family"]]
    return leaderboard


def stored_leaderboards(arm: str, methodology: str) -> QuerySet[Leaderboard]:
    """The stored leaderboards of an arm under a methodology, one of each category."""
    return Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology)


def _of_categories(
    selection: Selection,
    by_category: Mapping[str, Sequence[ResolvedEntry]],
    families: Mapping[str, str],
    externals: Mapping[str, str],
) -> dict[str, LeaderboardContents]:
    refused = refused_forecasts(selection, "entry__question__category")
    leaderboards = {}
    for category in sorted(by_category.keys() - {""}):
        leaderboard = forecast_leaderboard(by_category[category], families, externals)
        # A batch mixes categories: its cost, and whether its model declined, belongs to none of them.
        for row in leaderboard.entries:
            refusals = None if row["reference"] else refused[row["family"], category]
            row.update(dict.fromkeys(NO_PARTICIPATION) | {"refused": refusals})
        leaderboards[category] = leaderboard
    return leaderboards


def _add_fits(leaderboard: LeaderboardContents, fits: SlowFits) -> None:
    """Adds the results of the slow fits to a leaderboard that has none of them, or earlier ones."""
    for entry in leaderboard.entries:
        entry |= fits.figures[entry["forecaster"]]
    leaderboard.report["models"] |= fits.models
    notes = [note for note in leaderboard.report["notes"] if not note.startswith(SLOW_NOTE)]
    leaderboard.report["notes"] = notes + fits.notes
    leaderboard.report["agreement"] = rank_agreement(leaderboard.entries)


def _copy_slow_figures(leaderboard: LeaderboardContents, before: Leaderboard) -> None:
    """Copies the results of the last slow fits from the stored leaderboard."""
    entries = mappings_by("forecaster", before.entries)
    for entry in leaderboard.entries:
        entry |= {key: entries.get(entry["forecaster"], {}).get(key) for key in SLOW_FIGURES}
    leaderboard.report["agreement"] = rank_agreement(leaderboard.entries)
    leaderboard.report.update({name: before.report.get(name) for name in ("fitted", "fitted_at")})
    if "irt" in before.report.get("models", {}):
        leaderboard.report["models"]["irt"] = before.report["models"]["irt"]
    notes = [note for note in before.report.get("notes", ()) if note.startswith(SLOW_NOTE)]
    leaderboard.report["notes"] += notes
