"""The pages that a search engine should know, in files of bounded size."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.sitemaps import Sitemap
from django.db.models import Q, QuerySet
from django.urls import reverse

from agents.models import Agent, Decision, Family
from cohorts.models import Cohort, Methodology
from markets.models import Market, Question

PAGE = 1_000
"""Addresses in one file: what can be made in a moment."""


class Rows(Sitemap):  # type: ignore[type-arg]
    """The pages of a table's rows; `columns` are what their addresses take."""

    limit = PAGE
    page: str
    columns: tuple[str, ...] = ("pk",)
    changed: str | None = None

    def rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    def items(self) -> QuerySet[Any]:
        return self.rows().values_list(*self.columns, *([self.changed] if self.changed else []))

    def location(self, item: Sequence[Any]) -> str:
        return reverse(self.page, args=item[: len(self.columns)])

    def lastmod(self, item: Sequence[Any]) -> datetime | None:
        return item[-1] if self.changed else None

    def get_latest_lastmod(self) -> None:
        """Nothing: an index would read every row to say it."""


class Fixed(Sitemap):  # type: ignore[type-arg]
    """The pages that are always there."""

    def items(self) -> list[str]:
        return [
            "leaderboard", "forecasts", "calibration", "comparisons", "families", "cohorts", "markets", "imports",
            "methodologies", "about",
        ]  # fmt: skip

    def location(self, item: str) -> str:
        return reverse(item)


class Families(Rows):
    page, columns = "family", ("slug",)

    def rows(self) -> QuerySet[Family]:
        return Family.objects.order_by("pk")


class Methodologies(Rows):
    page, columns = "methodology", ("version",)

    def rows(self) -> QuerySet[Methodology]:
        return Methodology.objects.filter(published_at__isnull=False).order_by("pk")


class Cohorts(Rows):
    page, columns = "cohort", ("number",)

    def rows(self) -> QuerySet[Cohort]:
        return Cohort.objects.order_by("-number")


class Agents(Rows):
    page, columns = "agent", ("cohort__number", "family__slug")

    def rows(self) -> QuerySet[Agent]:
        return Agent.objects.order_by("-cohort__number", "family")


class Decisions(Rows):
    page, changed = "decision", "decided_at"

    def rows(self) -> QuerySet[Decision]:
        return Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-pk")


class Markets(Rows):
    page, changed = "market", "resolved_at"

    def rows(self) -> QuerySet[Market]:
        return Market.objects.filter(Q(followed=True) | Q(asked=True)).order_by("-pk")


class Questions(Rows):
    page, changed = "question", "resolved_at"

    def rows(self) -> QuerySet[Question]:
        return Question.objects.order_by("-pk")


SITEMAPS: dict[str, type[Sitemap]] = {  # type: ignore[type-arg]
    "pages": Fixed,
    "models": Families,
    "methodologies": Methodologies,
    "cohorts": Cohorts,
    "agents": Agents,
    "decisions": Decisions,
    "markets": Markets,
    "questions": Questions,
}
