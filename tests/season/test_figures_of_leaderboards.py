"""Every figure of the boards is the API's."""

import csv
from itertools import accumulate
from operator import itemgetter
from typing import Any

import pytest

from scoring.constants import SHOWN_REFERENCES
from tests.markup import elements, visible_text
from tests.season import formats
from tests.season.page_figures import Page, by
from tests.season.season_api import (
    DATA,
    FAMILY,
    SeasonApi,
    check_chart,
    check_returns,
    instant_of,
    ranks,
)

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def rank(entry: Any) -> tuple[str, str]:
    return str(entry["rank"] or "–"), ranks(entry)


def alpha(entry: Any) -> Any:
    if entry["forecaster"] == "market":
        return "–"
    return formats.signed_score(entry["alpha"]), formats.interval(entry["alpha_ci"], formats.signed_score, " to ")


def win_rate_notes(entry: Any) -> str:
    bets = formats.plural(entry["resolved_bets"], "bet")
    if entry["resolved_bets"] and not entry["win_rate_ci"]:
        bets += f" on {formats.plural(entry['resolved_events'], 'event')}"
    return " ".join(filter(None, [formats.interval(entry["win_rate_ci"], formats.share), bets]))


def costs_notes(entry: Any) -> str:
    lost_share = "" if entry["vanished_share"] is None else f"{formats.share(entry['vanished_share'])} of profit lost"
    missing = f"{entry['trades_without_book']} without a book" if entry["trades_without_book"] else ""
    margin = formats.half_width(entry["return_after_costs_ci"])
    return " ".join(filter(None, [margin, lost_share, missing]))


TRADING = {
    "Rank": rank,
    "Return": lambda e: (formats.signed_percent(e["return_percent"]), formats.half_width(e["return_ci"])),
    "After costs": lambda e: (formats.signed_percent(e["return_after_costs"]), costs_notes(e)),
    "Cohorts": lambda e: formats.count(e["cohorts"]),
    "Bet-sizing score": lambda e: formats.with_interval(e, "brier"),
    "Win rate": lambda e: (formats.share(e["win_rate"]), win_rate_notes(e)),
    "Cost": lambda e: formats.cost(e["cost_usd"]),
}
FORECASTS = {
    "Rank": lambda e: ("", f"({e['rank']})") if e["reference"] else rank(e),
    "Brier": lambda e: formats.with_interval(e, "brier"),
    "Skill": lambda e: formats.skill(e["skill_percent"]),
    "Adjusted Brier": lambda e: formats.with_interval(e, "adjusted_brier"),
    "Alpha": alpha,
    "Questions": lambda e: formats.count(e["n"]),
    "Coverage": lambda e: formats.share(e["coverage"], 0),
}
FORECAST_RANKING = FORECASTS | {"Rank": lambda e: ("–", ranks(e)) if e["reference"] else rank(e)}


def returns(gamma: str) -> Any:
    return lambda e: (
        formats.net_return(e["average_return"][gamma]),
        formats.interval((e["average_return_ci"] or {}).get(gamma), formats.net_return, " to "),
    )


SCORES = {
    "Log score": lambda e: formats.score(e["log"]),
    "Spherical score": lambda e: formats.score(e["spherical"]),
    "Top-choice accuracy": lambda e: formats.share(e["accuracy"]),
    "Share of the market’s score": lambda e: formats.signed_score(e["bss_market"]),
    "Calibration error": lambda e: (formats.score(e["ece"]), f"by chance {formats.score(e['ece_noise_floor'])}"),
}
RETURNS = {
    "Return": returns("0"),
    "Return, risk aversion 0.5": returns("0.5"),
    "Return, risk aversion 1": returns("1"),
    "Log wealth": lambda e: formats.signed_score(e["log_wealth"]["1"]),
}
ACROSS_QUESTIONS = {
    "Adjusted Brier": lambda e: (
        formats.score(e["adjusted_brier"]),
        formats.interval(e["adjusted_brier_ci"], formats.score, " to "),
    ),
    "Weighted Brier": lambda e: (
        formats.score(e["weighted_brier"]),
        formats.interval(e["weighted_brier_ci"], formats.score, " to "),
    ),
    "Ability (IRT)": lambda e: (
        formats.signed_score(e["irt_ability"]),
        formats.interval(e["irt_ability_ci"], formats.signed_score, " to "),
    ),
    "Bradley–Terry": lambda e: (
        formats.signed_score(e["bt_ability"]),
        formats.interval(e["bt_ability_ci"], formats.signed_score, " to "),
    ),
    "Pool weight": lambda e: formats.share(e["pool_weight"]),
}
PARTICIPATION = {
    "Forecasts": lambda e: formats.count(e["forecasts"]),
    "Declined": lambda e: formats.count(e["declined"]),
    "Refused": lambda e: formats.count(e["refused"]),
    "Model cost": lambda e: formats.cost(e["cost_usd"]),
}


def bears_claim(test: dict[str, Any]) -> bool:
    """The least data of a claim on Brier scores."""
    return bool(test["events"] >= 10 and test["freedom"] >= 3)


PAIRS = {
    "Questions": lambda p: formats.count(p["n"]),
    "Events": lambda p: formats.count(p["events"]),
    "Difference in Brier score": lambda p: (
        (formats.signed_score(p["difference"]), formats.reach(p["margin"])) if bears_claim(p) else "too few events"
    ),
    "Corrected p": lambda p: formats.p_value(p["p_holm"]).removeprefix("= ") if bears_claim(p) else "–",
    "Questions needed for 80 % power": lambda p: formats.count(p["questions_more"]) if bears_claim(p) else "–",
}
FORECASTS_AND_TRADES = {
    "Bets": lambda f: (formats.count(f["bets"]), f"{formats.count(f['resolved'])} resolved"),
    "Mean forecast": lambda f: formats.share(f["stated"]),
    "Mean stake": lambda f: formats.share(f["confidence"]),
    "Market probability": lambda f: formats.share(f["price"]),
    "Overbetting": lambda f: formats.with_interval(f, "over_betting", formats.signed_score, " to "),
    "Rank correlation": lambda f: formats.signed_score(f["spearman"]),
    "Positive edge": lambda f: formats.share(f["positive_edge"]),
    "Stake–edge correlation": lambda f: formats.signed_score(f["stake_edge"]),
    "Brier of forecasts": lambda f: formats.score(f["stated_brier"]),
    "Brier of prices": lambda f: formats.score(f["market_brier"]),
    "Return on bets": lambda f: formats.net_return(f["bet_return"]),
}


@pytest.mark.parametrize(("query", "figures"), [("", 20)])
def test_the_front_page(season: SeasonApi, query: str, figures: int) -> None:
    page = season.page(f"/?{query}")
    entries = by(season.rows(f"leaderboard/?protocol=forecast&{query}"), "display_name")
    page.table("forecasts", entries, FORECASTS, "Forecaster", no_figure=["Forecaster"], complete=False)
    lines = season.client.get(f"/leaderboard.csv?{query}").text.splitlines()
    rows_by_forecaster = {row["forecaster"]: row for row in csv.DictReader(lines)}
    for entry in entries.values():
        row, numbers = rows_by_forecaster[entry["forecaster"]], [entry["brier"], *(entry["brier_ci"] or [None, None])]
        written = ["" if number is None else str(number) for number in numbers]
        assert [row["brier"], row["brier_low"], row["brier_high"]] == written
    page.skip("Next decisions", "Leaderboard updated", "Questions resolved", "Forecasts scored")
    page.assert_compared(at_least=figures)


def check_lead_charts(page: Page, season: SeasonApi, entries: Any, report: Any, category: str | None) -> None:
    """Compares the scores on both sides of the slope chart with their boards, and the leads with the report."""
    of_category = f"&category={category}" if category else ""
    without = by(season.rows(f"leaderboard/?protocol=forecast&arm=blind{of_category}"), "display_name")
    for row in page.tables.pop(f"{DATA}prices", ()):
        name, side, *cells = [cell.text for cell in row.cells.values()]
        entry = (entries if side == "with the market’s prices" else without)[name,]
        score = entry["ranked_by"] if entry["ranked_by"] == next(iter(entries.values()))["ranked_by"] else "brier"
        numbers = [entry[score], *(entry[f"{score}_ci"] or (None, None))]
        page.compared += len(numbers)
        assert cells == [formats.score(number) for number in numbers], (name, side)
    leads = report.get("leads")
    if not leads or f"{DATA}leads" not in page.tables:
        return
    names, lines = {slug: name for name, slug in season.names.items()}, {}
    for slug, points in leads["forecasters"].items():
        if any(points):
            lines[names[slug]] = [point and point[0] for point in points]
    check_chart(page, "leads", list(map(instant_of, leads["ends"])), lines, formats.signed_score)


@pytest.mark.parametrize("query", ["", "methodology=v2", "methodology=short", "category=Weather"])
def test_the_trading_board(season: SeasonApi, query: str) -> None:
    page = season.page(f"/trading/?{query}")
    trading = by(season.rows(f"leaderboard/?{query}"), "family")
    page.table("trading", trading, TRADING, FAMILY, no_figure=["Model", "Without its largest bet"])
    until = query.partition("as_of=")[2] or "9"
    version = query.partition("methodology=")[2]
    cohorts = [call["number"] for call in season.rows("cohorts/") if version in ("", call["methodology"])]
    ranked = [a for a in season.rows("agents/") if a["family"] != "guest" and a["cohort"] in cohorts]
    check_returns(page, season, ranked, instant_of(f"{until}T00:00:00Z") if "as_of" in query else None)
    page.fact("Cohorts", formats.count(sum(row["started_at"] < until for row in season.rows("cohorts/"))))
    page.skip("Next decisions", "Leaderboard updated")
    page.assert_compared(at_least=80)


@pytest.mark.parametrize("query", [""])
def test_luck_and_risk(season: SeasonApi, query: str) -> None:
    page, rows = season.page(f"/risk/?{query}"), by(season.rows(f"risk/?{query}"), "family")
    columns = {
        "Rank": lambda row: str(row["rank"] or "–"),
        "Return": lambda row: formats.signed_percent(row["return_percent"]),
        "Bettor at market odds does as well": lambda row: (
            formats.share(row["odds_bettor_share"]),
            f"{formats.signed_money(row['held_profit'])} on {formats.plural(row['resolved_stakes'], 'stake')}",
        ),
        "Worst drawdown": lambda row: formats.percent(row["worst_drawdown"]),
        "Weekly volatility": lambda row: formats.percent(row["weekly_volatility"]),
    }  # fmt: skip
    page.table("models", rows, columns, FAMILY, no_figure=["Model"])
    page.assert_compared(at_least=40)


def test_curves_end_at_what_the_board_says_and_whoever_has_finished_stays_in_them(season: SeasonApi) -> None:
    """Both at the newest snapshot: one read of totals and of what finished agents kept, one of every agent's worth."""
    assert "completed" in {row["status"] for row in season.rows("cohorts/")}
    entries = by(season.rows("leaderboard/"), "family")
    series = season.one("performance/?range=ALL")["series"]
    assert {(one["family"], one["points"][-1][1]) for one in series} == {
        (family, entry["total_value"]) for (family,), entry in entries.items()
    }


@pytest.mark.parametrize(
    ("query", "of"),
    [("", ("priced", None)), ("?arm=blind", ("blind", None)), ("?category=Weather", ("priced", "Weather"))],
)
def test_the_forecast_board(season: SeasonApi, query: str, of: tuple[str, str | None]) -> None:
    page = season.page(f"/forecasts/{query}")
    ids = {
        (row["arm"], row["category"], row["methodology"]): row["id"] for row in season.rows("forecast-leaderboards/")
    }
    board = season.one(f"forecast-leaderboards/{ids[*of, None]}/")
    report, entries = board["report"], by(board["entries"], "display_name")
    fields = "&".join(f"{name}={value}" for name, value in zip(("arm", "category"), of, strict=True) if value)
    assert season.rows(f"leaderboard/?protocol=forecast&{fields}") == board["entries"]

    check_lead_charts(page, season, entries, report, of[1])
    shown = {key: e for key, e in entries.items() if not e["reference"] or e["forecaster"] in SHOWN_REFERENCES}
    page.table("ranking", shown, FORECAST_RANKING, "Forecaster", no_figure=["Forecaster"])
    for title, columns in (
        ("Other scores and calibration", SCORES),
        ("Returns at the market’s prices", RETURNS),
        ("Across different questions", ACROSS_QUESTIONS),
    ):
        page.table(title, entries, columns, "Forecaster", no_figure=["Forecaster"])
    models = {name: entry for name, entry in entries.items() if not entry["reference"]}
    page.table("Participation and cost", models, PARTICIPATION, "Model", no_figure=["Model"])
    names = {entry["forecaster"]: entry["display_name"] for entry in board["entries"]}
    pairs = {(names[pair["first"]], names[pair["second"]]): pair for pair in report["pairs"]}
    between = ("Model A", "Model B")
    page.table("pairs", pairs, PAIRS, lambda row: row.texts(*between), no_figure=between, complete=False)
    traders = by(report.get("forecasts_and_trades", []), "family")
    page.table("forecasts-and-trades", traders, FORECASTS_AND_TRADES, FAMILY, no_figure=["Model"], complete=False)
    agreement = {(METRICS[name],): line for name, line in report["agreement"]["spearman"].items()}
    columns = {METRICS[name]: lambda line, name=name: formats.signed_score(line[name]) for name in METRICS}
    page.table("agreement", agreement, columns, "Metric", no_figure=["Metric"], complete=False)
    page.fact("Questions resolved", formats.count(report["data"]["questions"]))
    page.fact("Events", formats.count(report["data"]["events"]))
    page.fact("Forecasts scored", formats.count(report["data"]["forecasts"]))
    page.fact("Leaderboard updated", formats.minute(board["computed_at"]))
    stream(page, report["curves"]["average_return"]["0"], names)
    page.assert_compared(at_least=200)


METRICS = {
    "brier": "Brier score", "log": "Log score", "spherical": "Spherical score", "accuracy": "Top-choice accuracy",
    "alpha": "Alpha", "ece": "Calibration error", "weighted_brier": "Weighted Brier",
    "adjusted_brier": "Adjusted Brier", "irt_ability": "Ability (IRT)", "bt_ability": "Bradley–Terry",
    "average_return:0": "Return", "average_return:0.5": "Return, risk aversion 0.5",
    "average_return:1": "Return, risk aversion 1",
}  # fmt: skip
"""The names of the metrics that rank forecasters."""
REFERENCES = ("market", "uniform", "ensemble")
"""Those that charts show."""


def stream(page: Page, answer: Any, names: dict[str, str]) -> None:
    """Averaged returns as questions close: after each number of them, each forecaster's."""
    lines, slugs = answer["forecasters"] | answer["references"], {name: slug for slug, name in names.items()}
    rows = page.tables.pop(f"{DATA}returns")
    assert [int(next(iter(row.cells.values())).text) for row in rows] == answer["questions"][::-1]
    for place, row in enumerate(reversed(rows)):
        for name, cell in list(row.cells.items())[1:]:
            page.compared += 1
            value = lines[slugs[name]][place]
            if cell.text != formats.signed_percent(None if value is None else round(100 * (value - 1), 2)):
                page.faults.append(f"{page.address}: the return of {name} is {cell.text}, the API says {value}")


def test_the_findings(season: SeasonApi) -> None:
    """How far the season is from each claim: none has a number of so few events or cohorts."""
    page = season.page("/findings/")
    entries = by(season.rows("leaderboard/?protocol=forecast"), "forecaster")
    first, second, *_, last = sorted(
        (e for e in entries.values() if not e["reference"] and e["rank"]), key=lambda e: e["rank"]
    )
    boards = season.rows("forecast-leaderboards/")
    (board,) = [b for b in boards if (b["arm"], b["category"], b["methodology"]) == ("priced", None, None)]
    report = season.one(f"forecast-leaderboards/{board['id']}/")["report"]
    (trader,) = [row for row in season.rows("leaderboard/") if row["rank"] == 1]
    expected = {
        "market": report["market"][first["forecaster"]]["events"],
        "ensemble": report["ensemble"]["events"],
        "stakes": _least_like_kelly(report["forecasts_and_trades"])["events"],
        "profit": trader["cohorts"],
    }
    for topic, opponent in (("worst", last), ("runner-up", second)):
        expected[topic] = _pair(report["pairs"], first["forecaster"], opponent["forecaster"])["events"]
    found = {item.attributes["id"]: item for item in elements(page.html, ".findings > li")}
    assert found.keys() == expected.keys()
    for topic, basis in expected.items():
        needed, unit = (6, "cohorts") if topic == "profit" else (10, "events")
        assert basis < needed
        assert elements(found[topic], ".interval-row") == []
        missing = f"{unit} for a claim yet, {basis} of the {needed} that it needs."
        assert missing in visible_text(found[topic], "figcaption")


def _pair(pairs: Any, *names: str) -> Any:
    return next(pair for pair in pairs if {pair["first"], pair["second"]} == set(names))


def _least_like_kelly(rows: Any) -> Any:
    """The model whose stakes are told best from Kelly's, by p corrected with Holm's method; of equals the furthest."""
    tested = sorted(filter(itemgetter("over_kelly_test"), rows), key=lambda row: row["over_kelly_test"]["p"])
    corrected = accumulate(
        (min(1.0, row["over_kelly_test"]["p"] * (len(tested) - place)) for place, row in enumerate(tested)), max
    )
    return min(zip(corrected, tested, strict=True), key=lambda pair: (pair[0], -abs(pair[1]["over_kelly"])))[1]
