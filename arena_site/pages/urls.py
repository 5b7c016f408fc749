"""URLs of the public pages. Slugs contain dots, so their converter is `str`."""

from django.contrib.sitemaps import views as sitemaps
from django.urls import path
from django.views.decorators.http import conditional_page, require_safe

from arena_site.pages import feeds
from arena_site.pages.addresses import by_address
from arena_site.pages.share_images import SIZE
from arena_site.pages.sitemaps import SITEMAPS
from arena_site.pages.views import (
    agents,
    agents_boards,
    anchors,
    calibration,
    cohorts,
    comparisons,
    conditions,
    costs,
    data,
    decisions,
    disagreements,
    families,
    findings,
    forecasts,
    imports,
    leaderboard,
    markets,
    methodologies,
    questions,
    registration,
    releases,
    search,
    site,
    time,
    trading,
    universes,
)
from arena_site.pages.views.chart_files import with_charts

urlpatterns = [
    *with_charts("", leaderboard.leaderboard, leaderboard.leaderboard_figures, name="leaderboard"),
    path("leaderboard.csv", leaderboard.leaderboard_csv, name="leaderboard-csv"),
    *with_charts("trading/", trading.trading, trading.trading_figures, name="trading"),
    path("search/", search.search, name="search"),
    path("decisions/", decisions.decisions, name="decisions"),
    path("decisions/<int:pk>/", decisions.decision, name="decision"),
    path("cohorts/", cohorts.cohorts, name="cohorts"),
    *with_charts("cohorts/<int:number>/", cohorts.cohort, cohorts.cohort_figures, name="cohort"),
    *with_charts(
        "cohorts/<int:number>/<str:slug>/", agents.agent, agents.agent_figures, name="agent", of_families=True
    ),
    path("cohorts/<int:number>/<str:slug>/trades/", by_address(agents.trades, "trades"), name="trades"),
    path("agents/new/", registration.new_agent, name="new-agent"),
    path("agents/application/", registration.application, name="agent-application"),
    path("agents/owner/", registration.owner, name="agent-owner"),
    *with_charts("agents/", agents_boards.agents_board, agents_boards.agents_board_figures, name="agents-board"),
    *with_charts(
        "agents/<str:slug>/",
        agents_boards.external_agent,
        agents_boards.external_agent_figures,
        name="external-agent",
        of_families=True,
    ),
    path("models/", families.families, name="families"),
    *with_charts("models/<str:slug>/", families.family, families.family_figures, name="family", of_families=True),
    path("markets/", markets.markets, name="markets"),
    *with_charts("markets/<int:pk>/", markets.market, markets.market_figures, name="market"),
    path("universes/<int:pk>/", universes.universe, name="universe"),
    path("universes/<int:pk>/<int:market>/", universes.universe_entry, name="universe-entry"),
    *with_charts("forecasts/", forecasts.forecasts, forecasts.forecasts_figures, name="forecasts"),
    path("forecasts/<int:pk>/", questions.forecast, name="forecast"),
    path("questions/", questions.questions, name="questions"),
    *with_charts("questions/<int:pk>/", questions.question, questions.question_figures, name="question"),
    *with_charts("calibration/", calibration.calibration, calibration.calibration_figures, name="calibration"),
    *with_charts("time/", time.time, time.time_figures, name="time"),
    *with_charts("costs/", costs.costs, costs.costs_figures, name="costs"),
    *with_charts("releases/", releases.releases, releases.releases_figures, name="releases"),
    *with_charts("conditions/", conditions.conditions, conditions.conditions_figures, name="conditions"),
    *with_charts(
        "disagreements/", disagreements.disagreements, disagreements.disagreements_figures, name="disagreements"
    ),
    path("compare/", comparisons.comparisons, name="comparisons"),
    *with_charts(
        "compare/<str:first>/<str:second>/",
        comparisons.comparison,
        comparisons.comparison_figures,
        name="comparison",
        of_families=True,
    ),
    path("og/<str:name>.<str:extension>", site.share_image, name="share-image"),
    path("imports/", imports.collections, name="imports"),
    path("imports/<slug:slug>/", imports.collection, name="import"),
    path("methodology/", methodologies.methodology, name="methodologies"),
    path("methodology/<str:version>/", methodologies.methodology, name="methodology"),
    path("data/", data.archives, name="data"),
    path("data/datasets/", data.datasets, name="datasets"),
    path("data/datasets/<str:day>/<path:name>", data.dataset, name="dataset-file"),
    path("data/<str:day>.zip", data.archive_file, name="archive-zip"),
    path("data/<str:day>/<path:name>", data.archive_file, name="archive-file"),
    path("about/", site.about, name="about"),
    *with_charts("findings/", findings.findings, findings.findings_figures, name="findings", picture_size=SIZE),
    path("glossary/", site.glossary, name="glossary"),
    path(".well-known/arena-chain.json", anchors.heads, name="chain-heads"),
    path(".well-known/arena-chain/<str:day>.json", anchors.daily_heads, name="daily-chain-heads"),
    path("robots.txt", site.robots, name="robots"),
    path("feeds/decisions.atom", conditional_page(require_safe(feeds.DecisionFeed())), name="feed-decisions"),
    path("feeds/resolutions.atom", conditional_page(require_safe(feeds.ResolutionFeed())), name="feed-resolutions"),
    path("feeds/agents.atom", conditional_page(require_safe(feeds.AgentFeed())), name="feed-agents"),
    path("feeds/chain.atom", conditional_page(require_safe(feeds.ChainFeed())), name="feed-chain"),
    path(
        "sitemap.xml",
        require_safe(sitemaps.index),
        {"sitemaps": SITEMAPS, "sitemap_url_name": "sitemap"},
        name="sitemaps",
    ),
    path("sitemap-<section>.xml", require_safe(sitemaps.sitemap), {"sitemaps": SITEMAPS}, name="sitemap"),
]
