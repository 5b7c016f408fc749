"""How to cite a leaderboard or a chart: a sentence, an address that shows the same, and both as BibTeX."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from arena_site.pages.charts.figures import Figure
from arena_site.pages.headlines import Headline
from arena_site.pages.selection import PageSelection

PUBLISHER = "Forecaster Arena"
DEMO = " (demo with invented data)"
"""Stands wherever a demo is quoted."""
NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")


class Citation(NamedTuple):
    """A citation of a leaderboard or a chart as it was at an instant."""

    title: str
    sentence: str
    url: str
    at: datetime

    @property
    def text(self) -> str:
        quoted = f" “{self.sentence}”" if self.sentence else ""
        return f"{publisher()}: {self.title}, {self.at.day} {self.at:%B %Y}.{quoted}"

    @property
    def bibtex(self) -> str:
        key = NOT_IN_KEYS.sub("-", f"{PUBLISHER} {self.title}".lower()).strip("-")
        fields = {
            "title": f"{{{_escaped(f'{publisher()}: {self.title}')}}}",
            "author": f"{{{{{PUBLISHER}}}}}",
            "year": f"{{{self.at.year}}}",
            "month": f"{{{self.at.month}}}",
            "url": f"{{{self.url}}}",
            "note": f"{{As of {self.at:%Y-%m-%d %H:%M} UTC}}",
        }
        lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items())
        return f"@misc{{{key}-{self.at:%Y-%m-%d},\n{lines}\n}}"


def publisher() -> str:
    """The name under which the site is cited."""
    return PUBLISHER + (DEMO if settings.ARENA_DEMO else "")


def citation(
    request: HttpRequest, selection: PageSelection, title: str, headline: Headline | None, at: datetime | None
) -> Citation | None:
    """The citation of the leaderboard that a page shows, as of its instant; None while there is no leaderboard."""
    if at is None:
        return None
    at = at.astimezone(UTC)
    dated = selection.query(as_of=at.isoformat().replace("+00:00", "Z"))
    narrowed = ", ".join(value for name, value in selection.chosen.items() if name in ("category", "methodology"))
    title = f"{title} ({narrowed})" if narrowed else title
    sentence = headline.sentence if headline else ""
    return Citation(title, sentence, request.build_absolute_uri(f"{request.path}{dated}"), at)


def chart_citation(request: HttpRequest, figure: Figure) -> Citation:
    """The citation of a chart as its page shows it."""
    url = request.build_absolute_uri(f"{request.path}{figure.dated or figure.query}#{figure.name}")
    return Citation(figure.title.rstrip("."), "", url, (figure.at or timezone.now()).astimezone(UTC))


def _escaped(text: str) -> str:
    """Text as BibTeX takes it."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", ""))
