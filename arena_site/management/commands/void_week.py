"""`void_week`: a week's cohort counts on no leaderboard any more."""

from datetime import UTC, datetime
from typing import Any

from arena_site.dashboard.actions.cohorts import VoidWeek
from arena_site.dashboard.audit import ActionCommand
from cohorts.models import Cohort
from cohorts.weeks import week_start


class Command(ActionCommand):
    help = (
        "Voids a week for good: its cohort is asked nothing more and leaves every leaderboard, visibly and on record."
    )
    action = VoidWeek()

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("week", metavar="COHORT-or-DATE", help="the cohort's number, or a day of its first week")

    def form_fields(self, options: dict[str, Any]) -> dict[str, Any]:
        week, cohorts = options["week"], Cohort.objects.all()
        if week.isascii() and week.isdigit() and len(week) < 8:
            cohorts = cohorts.filter(number=week)
        else:
            try:
                day = datetime.strptime(week, "%Y-%m-%d").replace(tzinfo=UTC)
            except ValueError:
                self.refuse(f"{week}: write a cohort's number, or a day like 2026-03-08")
            cohorts = cohorts.filter(week_start=week_start(day))
        cohort = cohorts.first()
        if cohort is None:
            self.refuse(f"{week}: no cohort began then, or has this number")
        return {"cohort": cohort.pk}
