"""The leaderboards as dot-and-interval charts, for the front page and for share images."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agents.models import Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count, score
from arena_site.pages.headlines import Headline
from scoring.constants import FORECAST, REFERENCES
from scoring.leaderboard_keys import ranked_by
from scoring.models import AgentsBoard
from scoring.selectors.forecast_boards import ForecastBoard

BASELINES = REFERENCES[:2]
"""The market's prices and equal probabilities, which are lines of the chart."""
BRIER_NAMES = {"brier": "Brier score", "adjusted_brier": "adjusted Brier score"}
"""The scores that rank forecasters, in a sentence."""

Entries = Sequence[Mapping[str, Any]]


def brier_figure(
    board: ForecastBoard, headline: Headline | None, families: Mapping[str, Family], **options: str
) -> Figure:
    """The Brier score of each model with its interval, and the baselines; families by slug."""
    column = ranked_by(board.entries)
    name = BRIER_NAMES[column]
    title_name = name[0].upper() + name[1:]
    scored = [entry for entry in board.entries if entry[column] is not None]
    models = [entry for entry in scored if not entry["reference"] and not entry["external"]]
    baselines = {entry["display_name"]: entry[column] for entry in scored if entry["forecaster"] in BASELINES}
    chart = interval_chart(
        models,
        column,
        families,
        x_title=f"{title_name} (0 is best)",
        unit="score",
        baselines=baselines,
        tied=headline.tied if headline else [],
    )
    title = "Brier scores of the models so far." if models else "No question with a forecast has resolved yet."
    note = "With 95 % intervals; lower is better."
    if baselines:
        lines = ", ".join(f"{name.lower()} {score(value)}" for name, value in baselines.items())
        note += f" Lines: {lines}."
    if headline:
        title = leader_title(headline, f"has the lowest {name}")
        note += " The bracket marks who is statistically tied with the leader." if headline.tied else ""
    data = board.report.get("data", {})
    source = (
        f"{count(data.get('forecasts'))} forecasts of {count(data['questions'])} resolved questions"
        if data.get("questions")
        else ""
    )
    return Figure("scores", title, chart, note, source=source, at=board.computed_at, **options)


def return_figure(
    entries: Entries, headline: Headline | None, families: Mapping[str, Family], at: datetime | None
) -> Figure:
    """The mean return of each ranked model with its interval; families by slug."""
    chart = interval_chart(
        [entry for entry in entries if not entry["external"] and entry["return_percent"] is not None],
        "return_percent",
        families,
        interval="return_ci",
        x_title="Mean return (%)",
        unit="percent",
        baselines={"Break-even": 0.0},
        tied=headline.tied if headline else [],
    )
    title = leader_title(headline, "has the highest mean return") if headline else "No portfolio has been valued yet."
    note = "Mean return on paper money over cohorts, with its 95 % interval over calendar weeks."
    return Figure("mean-returns", title, chart, note, at=at)


def agents_figure(
    board: AgentsBoard, headline: Headline | None, families: Mapping[str, Family], **options: str
) -> Figure:
    """The score of each ranked agent with its interval, and the baselines of its protocol; families by slug."""
    ranked = sorted((e for e in board.entries if e["rank"] is not None), key=lambda entry: entry["rank"])
    by_alpha = bool(ranked) and ranked[0].get("ranked_by") == "alpha"
    lines = {e["display_name"]: e["score"] for e in board.entries if e["reference"] and e["score"] is not None}
    if by_alpha:
        key, unit, baselines, x_title = "alpha", "signed_score", {"Market": 0.0}, "Alpha (above 0 beats the market)"
        lead, note = "highest alpha", "Alpha, the market’s Brier score less the agent’s"
    elif board.protocol == FORECAST:
        key, unit, baselines, x_title = "score", "score", lines, "Adjusted Brier score (0 is best)"
        lead, note = "lowest adjusted Brier score", "Adjusted Brier score"
    else:
        key, unit, baselines, x_title = "score", "percent", {"Break-even": 0.0}, "Mean return (%)"
        lead, note = "highest mean return", "Mean return on paper money"
    tied = headline.tied if headline else []
    chart = interval_chart(ranked, key, families, x_title=x_title, unit=unit, baselines=baselines, tied=tied)
    title = (
        leader_title(headline, f"has the {lead} of the external agents")
        if headline
        else "No external agent is ranked yet."
    )
    return Figure("scores", title, chart, f"{note} and 95 % interval.", at=board.computed_at, **options)


def leader_title(headline: Headline, leads: str) -> str:
    """A sentence that names the leader, what it leads in, the condition, and how many are tied with it."""
    tied = len(headline.tied)
    ties = f", statistically tied with {count(tied)} other{'' if tied == 1 else 's'}" if tied else ""
    return f"{headline.leader['display_name']} {leads} {headline.condition}{ties}."
