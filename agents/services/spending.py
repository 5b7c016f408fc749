"""The costs of a protocol in a week, against its spend cap."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import Q, Sum

from agents.models import Decision, Elicitation, ModelCall, Task
from agents.services.run_settings import spend_limit
from cohorts.weeks import WEEK
from foundation.bulk import rows_by
from markets.models import QuestionEntry
from markets.sources.registry import evidence_query_usd

TASK_MODELS: dict[str, type[Task]] = rows_by("PROTOCOL", (Decision, Elicitation))
"""The task of each protocol."""
WARNING_FRACTION = Decimal("0.8")
"""The fraction of the cap from which it is near."""


@dataclass(frozen=True, slots=True)
class WeekSpending:
    """US dollars: billed, booked at the worst case until the gateway tells what it billed, and for evidence."""

    protocol: str
    cap: Decimal
    billed: Decimal
    booked: Decimal
    evidence: Decimal = Decimal(0)
    """That of the queries behind the week's evidence, at the price of now; no call's cost."""

    @property
    def spent(self) -> Decimal:
        """The amount that counts against the cap."""
        return self.billed + self.booked + self.evidence

    @property
    def is_reached(self) -> bool:
        return self.spent >= self.cap

    @property
    def is_near(self) -> bool:
        return self.spent >= self.cap * WARNING_FRACTION

    @property
    def amounts(self) -> str:
        return f"${self.spent:.2f} of this week's ${self.cap:.2f}"

    @property
    def booked_part(self) -> str:
        """The clause about booked costs; empty where nothing is booked."""
        return f", ${self.booked:.2f} of it booked and not billed yet" if self.booked else ""

    @property
    def message(self) -> str:
        """The sentence of a run or a check that the cap stops."""
        return f"spend cap reached: ${self.spent:.2f} of ${self.cap:.2f} for the week{self.booked_part}"

    @property
    def remedy(self) -> str:
        limit = "the limit on the dashboard."
        if self.booked:
            return f"Run reconcile_costs, which releases what was booked and not billed, or raise {limit}"
        return f"Raise {limit}"


def week_spending(protocol: str, week_start: datetime, *, default_cap: Decimal | None = None) -> WeekSpending:
    """The cost of all calls of a protocol in a week, failed and unanswered ones included.

    `default_cap` is in place of ARENA_SPEND_LIMIT_USD, where no operator has set a cap.
    """
    task = TASK_MODELS[protocol]
    tasks = task._default_manager.filter(task.in_week(week_start))
    is_booked = Q(calls__cost_source=ModelCall.CostSource.BOOKED)
    sums = tasks.aggregate(all=Sum("calls__cost_usd"), booked=Sum("calls__cost_usd", filter=is_booked))
    booked = sums["booked"] or Decimal(0)
    price = evidence_query_usd() if task is Elicitation else Decimal(0)
    of_week = Q(question_set__day__gte=week_start, question_set__day__lt=week_start + WEEK)
    with_evidence = QuestionEntry.objects.filter(of_week).exclude(question_set__evidence_sha256="")
    queries = with_evidence.count() if price else 0
    cap = spend_limit(protocol, settings.ARENA_SPEND_LIMIT_USD if default_cap is None else default_cap)
    return WeekSpending(protocol, cap, (sums["all"] or Decimal(0)) - booked, booked, queries * price)


def spending_by_protocol(week_start: datetime) -> list[WeekSpending]:
    """The cost of a week in each protocol."""
    return [week_spending(protocol, week_start) for protocol in TASK_MODELS]
