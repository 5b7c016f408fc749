"""Images of the site and its leaderboards for links on social networks: 1200 by 630 pixels, cached by version."""

from datetime import datetime

from django.conf import settings
from django.template.loader import render_to_string

from arena_site.pages.board_figures import agents_figure, brier_figure, return_figure
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.images import png_image, svg_image
from arena_site.pages.headlines import HEADLINE_PARTS, agents_headline, forecast_headline, trading_headline
from foundation.clock import present
from markets.services.cache_versions import Scope, current_versions
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.models import Leaderboard
from scoring.selectors.competition import competition_index
from scoring.selectors.forecast_boards import forecast_board
from scoring.selectors.leaderboard_entries import read_agents_board, trading_board

SIZE = (1200, 630)
SITE = "site"
"""The image of pages without a chart: the site's name and what it is."""
TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def share_image(name: str, extension: str, address: str) -> tuple[str, str | bytes] | None:
    """The version and the content of an image; None for an unknown name or type. `address` stands in its source."""
    if name == SITE and extension in TYPES:
        card = render_to_string("site_card.svg", {"address": address, "is_demo": settings.ARENA_DEMO}, using="jinja2")
        return f"{SITE}-{settings.ARENA_DEMO}", png_image(card, SIZE) if extension == "png" else card
    if name not in FIGURES or extension not in TYPES:
        return None
    versions = current_versions()
    version = "-".join(str(versions.get(scope)) for scope in (Scope.LEADERBOARDS, Scope.COMPETITION))
    svg = svg_image(FIGURES[name](present()), address)
    return version, png_image(svg, SIZE) if extension == "png" else svg


def _forecasts(now: datetime) -> Figure:
    board = forecast_board(parts=HEADLINE_PARTS)
    competition = competition_index()
    condition = competition.conditions.phrase(competition.conditions.board())
    headline = forecast_headline(board.entries, board.report, at=board.computed_at or now, condition=condition)
    return brier_figure(board, headline, competition.by_slug)


def _trading(now: datetime) -> Figure:
    entries, pairs = trading_board()
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES, category="")
    at = stored.values_list("computed_at", flat=True).first()
    competition = competition_index()
    headline = trading_headline(entries, pairs, competition.cohorts.values(), at=at or now)
    return return_figure(entries, headline, competition.by_slug, at)


def _agents(now: datetime) -> Figure:
    board = read_agents_board(FORECAST)
    competition = competition_index()
    headline = agents_headline(board, competition, at=board.computed_at or now)
    return agents_figure(board, headline, competition.by_slug)


FIGURES = {"trading": _trading, "forecasts": _forecasts, "agents": _agents}
