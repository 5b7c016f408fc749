"""Boards of the forecast protocol as they stood, and how those of past instants come to be on record.

Made ahead, so that a reader need not wait for them; what is not there is computed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cohorts.models import Methodology
from markets.models import Question, QuestionSet, QuestionSheet
from scoring import past
from scoring.services.boards import ALL_METHODOLOGIES, keep_past_scores
from scoring.services.forecast_boards import ATTENDED, FIGURES, FORECAST, display_names, forecast_board, ranked
from scoring.services.forecast_panels import REFERENCES, AskedEntry, Selection, asked_entries, on_board

MANY, FEW = 1_000, 50
"""Boards of an arm that are made at a time, each in a fraction of a second: daily, and hourly."""
NOBODY = ""
"""A family that never says anything: what its entry says, it says of everyone who had not spoken by then."""


def past_boards_keep(*, most: int) -> int:
    """Makes the boards that are missing of both protocols, of each arm the newest `most`; returns how many."""
    played = Methodology.objects.filter(cohorts__isnull=False).order_by("version")
    kept = sum(keep_past_scores(version) for version in _versions(list(played.values_list("version", flat=True))))
    asked = QuestionSet.objects.order_by("methodology").values_list("methodology", flat=True)
    for arm in QuestionSheet.objects.order_by("arm").values_list("arm", flat=True).distinct():
        for version in _versions(list(asked.distinct())):
            kept += keep_past_boards(Selection(arm, version), most=most)
    return kept


def _versions(methodologies: list[str]) -> list[str]:
    """All together, and each by itself where there are several: a single one's boards are those over all."""
    several = list(dict.fromkeys(methodologies))
    return [ALL_METHODOLOGIES, *several] if len(several) > 1 else [ALL_METHODOLOGIES]


def entries_at(selection: Selection, category: str = "") -> list[dict[str, Any]]:
    """The averaged figures of a board as it stood at the selection's instant; what is fitted or was spent is null."""
    found = past.stored(past.Key(FORECAST, _kept_under(selection), selection.arm, category), selection.until)
    if found is None:
        found = spoken_entries([e for e in asked_entries(selection) if category in ("", e.category)])
    spoken = {entry["forecaster"]: entry for entry in found}
    families = on_board(selection).order_by("pk").values_list("slug", "display_name", "external")
    names = display_names([])
    entries = [
        spoken.get(slug, spoken[NOBODY])
        | {"forecaster": slug, "family": slug, "display_name": name, "external": external}
        for slug, name, external in families
    ]
    entries += [spoken[name] | {"display_name": names[name]} for name in REFERENCES]
    empty = dict.fromkeys(("family", "rank", "rank_low", "rank_high", *FIGURES, *ATTENDED))
    return ranked([empty | entry for entry in entries])


def spoken_entries(asked: Sequence[AskedEntry]) -> list[dict[str, Any]]:
    """What these entries say of whoever spoke on them, of the references and of NOBODY, without what is null.

    Who else stands on the board, and by which name, is none of it: the figures of others do not depend on the silent.
    """
    families = sorted({slug for entry in asked for slug in entry.said})
    externals = sorted({slug for entry in asked for slug in entry.apart})
    board = forecast_board(asked, [*families, NOBODY], externals=externals, reported=False)
    return [
        {key: value for key, value in entry.items() if key not in ("rank", "display_name") and value is not None}
        for entry in sorted(board.entries, key=lambda entry: entry["forecaster"])
    ]


def keep_past_boards(selection: Selection, *, most: int) -> int:
    """Makes those boards of past instants that are not on record, the newest first; returns how many."""
    under = past.token(FORECAST)
    resolved = Question.objects.filter(status=Question.Status.RESOLVED).order_by()
    ends = past.Ends.of(resolved.values_list("category", "resolved_at").distinct())  # type: ignore[arg-type]
    board = past.Key(FORECAST, selection.methodology, selection.arm)
    if not (lacking := past.lacking(board, ends, under)[:most]):
        return 0
    asked = asked_entries(selection)
    ended = dict(resolved.values_list("pk", "resolved_at"))
    known: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def made() -> Iterator[tuple[past.Lacking, list[dict[str, Any]]]]:
        for one in lacking:
            of_board = [e for e in asked if one.key.category in ("", e.category)]
            by_then = [e for e in of_board if (ended.get(e.question) or past.FOREVER) <= one.since]
            which = (one.key.category, len(by_then))  # later ones hold all that earlier ones do
            if which not in known:
                known[which] = spoken_entries(by_then)
            yield one, known[which]

    return past.keep(made(), FORECAST, under)


def _kept_under(selection: Selection) -> str:
    """The methodology under which a selection's past boards are kept: a single version's are those over all."""
    version = selection.methodology
    others = QuestionSet.objects.exclude(methodology=version)
    return version if version and others.exists() else ALL_METHODOLOGIES
