"""The choices of a page that shows a part of the forecast leaderboards' reports, and that part."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest

from arena_site.pages.selection import PageSelection, all_or_one, condition_labels
from arena_site.pages.stored_boards import stored_boards
from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.forecast_boards import report_part


class SelectedPart(NamedTuple):
    """The figures of a part of a report and their instant, the choices of it, and links to other choices."""

    figures: Mapping[str, Any]
    computed_at: datetime | None
    selection: PageSelection
    competition: CompetitionIndex
    filters: Sequence[Any]

    @property
    def condition(self) -> str:
        """The prompt condition, for a sentence."""
        return self.competition.conditions.phrase(self.selection["arm"])

    def name(self, slug: str) -> str:
        """The display name of a family."""
        return self.competition.by_slug[slug].display_name

    @property
    def files(self) -> dict[str, Any]:
        """The options of each figure of the page."""
        return {"at": self.computed_at, "query": self.selection.suffix}


def selected_part(request: HttpRequest, name: str) -> SelectedPart:
    """The part of this name that a request selects. Raises Http404 for an unknown choice."""
    stored = stored_boards(protocol=FORECAST, category="")
    competition = competition_index()
    conditions = competition.conditions
    names = conditions.names(request.GET.get("methodology", ALL_METHODOLOGIES))
    selection = PageSelection.from_request(
        request, {"arm": names, "methodology": [ALL_METHODOLOGIES, *stored.versions]}
    )
    filters = selection.filter_links(
        [
            ("Prompt condition", "arm", condition_labels(conditions, selection, stored.arms)),
            ("Methodology", "methodology", all_or_one("all versions", stored.versions, minimum=2)),
        ]
    )
    figures, at = report_part(name, arm=selection["arm"], methodology=selection["methodology"])
    return SelectedPart(figures, at, selection, competition, filters)


def listing(names: Sequence[str]) -> str:
    """The names as a sentence lists them."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]
