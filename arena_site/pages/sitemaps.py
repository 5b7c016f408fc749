"""Sitemaps: the pages that search engines should index, in files of bounded size."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.sitemaps import Sitemap
from django.db.models import Q, QuerySet
from django.urls import reverse

from agents.models import Agent, Decision, Family
from arena_site.pages.filters import page_url
from arena_site.pages.navigation import linked_pages
from cohorts.models import Cohort, Methodology
from markets.models import Market, Question

FILE_SIZE = 1_000
"""Addresses in one file."""


class StaticSitemap(Sitemap):  # type: ignore[type-arg]
    """The pages without arguments: those of the navigation, and two to which others lead."""

    def items(self) -> list[str]:
        return [*linked_pages(), "kit", "corrections"]

    def location(self, item: str) -> str:
        return reverse(item)


class TableSitemap(Sitemap):  # type: ignore[type-arg]
    """The pages of a table's rows; `columns` are the arguments of their URLs."""

    limit = FILE_SIZE

    def __init__(self, url_name: str, rows: QuerySet[Any], *columns: str, lastmod: str | None = None) -> None:
        self.url_name, self.rows, self.lastmod_column = url_name, rows, lastmod
        self.columns = columns or ("pk",)

    def items(self) -> QuerySet[Any]:
        return self.rows.values_list(*self.columns, *([self.lastmod_column] if self.lastmod_column else []))

    def location(self, item: Sequence[Any]) -> str:
        return page_url(self.url_name, *item[: len(self.columns)])

    def lastmod(self, item: Sequence[Any]) -> datetime | None:
        return item[-1] if self.lastmod_column else None

    def get_latest_lastmod(self) -> None:
        """None: the index would have to read every row."""


_published = Methodology.objects.filter(published_at__isnull=False).order_by("pk")
_completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-pk")
_markets = Market.objects.filter(Q(traded=True) | Q(has_questions=True)).order_by("-pk")
_agents = Agent.objects.order_by("-cohort__number", "family")

SITEMAPS: dict[str, Callable[[], Sitemap]] = {  # type: ignore[type-arg]
    "pages": StaticSitemap,
    "models": partial(TableSitemap, "family", Family.objects.order_by("pk"), "slug"),
    "external-agents": partial(TableSitemap, "external-agent", Family.objects.filter(external=True), "slug"),
    "methodologies": partial(TableSitemap, "methodology", _published, "version"),
    "cohorts": partial(TableSitemap, "cohort", Cohort.objects.order_by("-number"), "number"),
    "agents": partial(TableSitemap, "agent", _agents, "cohort__number", "family__slug"),
    "decisions": partial(TableSitemap, "decision", _completed, lastmod="decided_at"),
    "markets": partial(TableSitemap, "market", _markets, lastmod="resolved_at"),
    "questions": partial(TableSitemap, "question", Question.objects.order_by("-pk"), lastmod="resolved_at"),
}
"""By section; each request makes its own instance, since Django keeps the latest change on it."""
