"""How to cite a leaderboard or a chart: a sentence, an address that shows the same, and both as BibTeX."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from django.conf import settings
from django.http import HttpRequest

from arena_site.pages.charts.figures import Figure
from arena_site.pages.filters import exact_iso
from arena_site.pages.headlines import Headline
from arena_site.pages.selection import PageSelection
from foundation.clock import present
from scoring.selectors.competition import last_competition_index

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
    methodologies: Sequence[str] = ()

    @property
    def rules(self) -> str:
        """The methodologies in words; empty where there is no cohort."""
        name = "methodology" if len(self.methodologies) == 1 else "methodologies"
        return f", {name} {', '.join(self.methodologies)}" if self.methodologies else ""

    @property
    def text(self) -> str:
        quoted = f" “{self.sentence}”" if self.sentence else ""
        return f"{publisher()}: {self.title}, {self.at.day} {self.at:%B %Y}{self.rules}.{quoted}"

    @property
    def bibtex(self) -> str:
        key = NOT_IN_KEYS.sub("-", f"{PUBLISHER} {self.title}".lower()).strip("-")
        fields = {
            "title": f"{{{_escaped(f'{publisher()}: {self.title}')}}}",
            "author": f"{{{{{PUBLISHER}}}}}",
            "year": f"{{{self.at.year}}}",
            "month": f"{{{self.at.month}}}",
            "url": f"{{{self.url}}}",
            "note": f"{{As of {self.at:%Y-%m-%d %H:%M} UTC{_escaped(self.rules)}}}",
        }
        lines = ",\n".join(f"  {name} = {value}" for name, value in fields.items())
        return f"@misc{{{key}-{self.at:%Y-%m-%d},\n{lines}\n}}"


def publisher() -> str:
    """The name under which the site is cited."""
    return PUBLISHER + (DEMO if settings.ARENA_DEMO else "")


def citation(
    request: HttpRequest, selection: PageSelection, title: str, headline: Headline | None, at: datetime | None
) -> Citation | None:
    """The citation of the leaderboard that a page shows, as it was published at an instant; None without one."""
    if at is None:
        return None
    at = at.astimezone(UTC)
    narrowed = ", ".join(value for name, value in selection.chosen.items() if name in ("category", "methodology"))
    title = f"{title} ({narrowed})" if narrowed else title
    sentence = headline.sentence if headline else ""
    versions = [selection.chosen["methodology"]] if "methodology" in selection.chosen else methodologies_in_play()
    dated = {**selection.chosen, "as_of": exact_iso(at)}
    if len(versions) == 1:
        dated["methodology"] = versions[0]
    return Citation(title, sentence, request.build_absolute_uri(f"{request.path}?{urlencode(dated)}"), at, versions)


def chart_citation(request: HttpRequest, figure: Figure) -> Citation:
    """The citation of a chart as its page shows it."""
    url = request.build_absolute_uri(f"{request.path}{dated_query(figure)}#{figure.name}")
    at = (figure.at or present()).astimezone(UTC)
    return Citation(figure.title.rstrip("."), "", url, at, methodologies_of(figure))


def image_code(request: HttpRequest, figure: Figure) -> str:
    """The HTML that shows a chart's SVG on another site, with a link to its page."""
    query = dated_query(figure)
    image = escape(request.build_absolute_uri(f"{request.path}charts/{figure.name}.svg{query}"))
    page = escape(request.build_absolute_uri(f"{request.path}{query}#{figure.name}"))
    return f'<a href="{page}"><img src="{image}" alt="{escape(figure.title)}" width="100%" loading="lazy"></a>'


def dated_query(figure: Figure) -> str:
    """The query of a chart's page: its choices, the instant of its board, and its methodology if it is one."""
    values = dict(parse_qsl((figure.page_query or figure.query).removeprefix("?")))
    versions = methodologies_of(figure)
    if len(versions) == 1:
        values.setdefault("methodology", versions[0])
    return f"?{urlencode(values)}" if values else ""


def methodologies_of(figure: Figure) -> Sequence[str]:
    """The methodology that a chart is narrowed to, or those of all cohorts."""
    in_address = dict(parse_qsl((figure.page_query or figure.query).removeprefix("?")))
    version = figure.methodology or in_address.get("methodology")
    return [version] if version else methodologies_in_play()


def methodologies_in_play() -> Sequence[str]:
    """The methodologies of all cohorts, which stand behind a figure that is narrowed to none, as the page read them."""
    return sorted({cohort.methodology.version for cohort in last_competition_index().cohorts.values()})


def _escaped(text: str) -> str:
    """Text as BibTeX takes it."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", ""))
