"""The arena's pages. Slugs hold dots, so they are taken as plain text."""

from django.urls import path

from scoring.views import cohorts, decisions, leaderboard, markets, methodologies

urlpatterns = [
    path("", leaderboard.leaderboard, name="leaderboard"),
    path("decisions/<int:pk>/", decisions.decision, name="decision"),
    path("cohorts/", cohorts.cohorts, name="cohorts"),
    path("cohorts/<int:number>/", cohorts.cohort, name="cohort"),
    path("cohorts/<int:number>/<str:slug>/", cohorts.agent, name="agent"),
    path("models/<str:slug>/", cohorts.family, name="family"),
    path("markets/", markets.markets, name="markets"),
    path("markets/<int:pk>/", markets.market, name="market"),
    path("methodology/", methodologies.methodology, name="methodologies"),
    path("methodology/<str:version>/", methodologies.methodology, name="methodology"),
]
