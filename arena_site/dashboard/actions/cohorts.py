"""Voiding of a week: its cohort counts on no leaderboard any more."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agents.models import Decision, Position, Trade
from agents.services.envelopes import answered_decisions, open_envelopes
from arena_site.dashboard.action import Action, ActionResult, ChoiceForm, FormData, Preview, RowChoiceField
from cohorts.models import Cohort

REASON_LENGTH = 200
SEALED_COHORT = "Answers of its agents are sealed: it can be voided once they are opened."


def counted_cohorts(rows: QuerySet[Cohort]) -> QuerySet[Cohort]:
    return rows.filter(voided_at=None).order_by("-number")


class CohortForm(ChoiceForm):
    cohort = RowChoiceField(Cohort.objects.all(), "cohort", counted_cohorts)


class VoidWeek(Action):
    name, title, confirm_label = "void-week", "Void a week", "Yes, void it"
    description = "Takes a week's cohort off every leaderboard, for good: its prices, prompts or answers were wrong."
    permission = "cohorts.change_cohort"
    reason_help = f"For the audit log and, its first {REASON_LENGTH} characters, for readers, the API and archives."
    form, row_field = CohortForm, "cohort"

    def prepare(self, *, at: datetime) -> None:
        open_envelopes(at=at)

    def state(self, data: FormData) -> dict[str, Any]:
        cohort = Cohort.objects.get(pk=data["cohort"].pk)
        return {"voided at": cohort.voided_at, "void reason": cohort.void_reason}

    def obstacle(self, data: FormData, at: datetime) -> str:
        if self.state(data)["voided at"]:
            return "It is voided already."
        is_sealed = answered_decisions(beyond=at).filter(cohort=data["cohort"].pk).exists()
        return SEALED_COHORT if is_sealed else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        cohort: Cohort = data["cohort"]
        decided = Decision.objects.filter(cohort=cohort, status=Decision.Status.COMPLETED).count()
        trades = Trade.objects.filter(agent__cohort=cohort).count()
        position_count = Position.objects.open().filter(agent__cohort=cohort).count()
        return Preview(
            f"{cohort}, which began on {cohort.week_start:%Y-%m-%d}, leaves every leaderboard, present and past, with "
            "all its weeks. Its agents are asked nothing more; their positions are settled as usual.",
            [
                f"{decided} decisions and {trades} trades stay on record and can be read",
                f"{position_count} positions are open",
            ],
            "It can not be undone. Other cohorts of these Sundays, and all forecasts, count as before.",
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        from scoring.services.family_totals import void_cohort  # loads the scoring library

        if answered_decisions().filter(cohort=data["cohort"].pk).exists():
            return ActionResult(f"Nothing was changed. {SEALED_COHORT}", changed=False)
        voided = void_cohort(data["cohort"], reason=reason[:REASON_LENGTH], at=at)
        return ActionResult(f"{data['cohort']} is voided.") if voided else None

    def after_commit(self, data: FormData, result: ActionResult, *, at: datetime) -> None:
        from scoring.services.trading_leaderboards import refresh_trading_leaderboards  # loads the scoring library

        if result.changed:
            refresh_trading_leaderboards(at=at)
