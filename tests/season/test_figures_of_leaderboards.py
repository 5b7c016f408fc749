"""Every figure of the boards is the API's."""

from typing import Any

import pytest

from tests.season import formats
from tests.season.page_figures import NO_FIGURE, Page, Row, by
from tests.season.season_api import (
    DATA,
    FAMILY,
    SeasonApi,
    calibration_squares,
    check_curves,
    expected_square,
    ranks,
)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("", ""),
        ("?methodology=v2", "methodology=v2"),
        ("?methodology=v3", "methodology=v3"),
        ("?as_of=2026-03-14", "as_of=2026-03-14"),
        ("?category=Weather", "category=Weather"),
    ],
)
def test_the_leaderboard(season: SeasonApi, query: str, same: str) -> None:
    page = season.page(f"/{query}")
    trading = by(season.rows(f"leaderboard/?{same}"), "family")
    page.table(
        "ranking",
        lambda row: trading[row.target(FAMILY)],
        {
            "Rank": lambda e: (str(e["rank"] or "–"), ranks(e)),
            "Model": NO_FIGURE,
            "Return": lambda e: (formats.signed_percent(e["return_percent"]), formats.half_width(e["return_ci"])),
            "Over time": NO_FIGURE,
            "Mean value": lambda e: (formats.money(e["total_value"]), formats.plural(e["cohorts"], "cohort")),
            "Brier": lambda e: (formats.score(e["brier"]), formats.interval(e["brier_ci"])),
            "Win rate": lambda e: (formats.share(e["win_rate"]), formats.plural(e["resolved_bets"], "bet")),
            "Cost": lambda e: formats.cost(e["cost_usd"]),
        },
        rows=len(trading),
    )
    forecast = by(season.rows(f"leaderboard/?protocol=forecast&{same}"), "display_name")
    page.table(
        "words",
        lambda row: forecast[(row.cells["Forecaster"].text.partition(" external")[0],)],
        {
            "Rank": lambda e: ("", f"({e['rank']})") if e["reference"] else (str(e["rank"] or "–"), ranks(e)),
            "Forecaster": NO_FIGURE,
            "Brier": lambda e: (formats.score(e["brier"]), formats.interval(e["brier_ci"])),
            "Alpha": lambda e: (
                "–"
                if e["forecaster"] == "market"
                else (
                    formats.signed_score(e["alpha"]),
                    "" if e["alpha_se"] is None else f"± {formats.score(e['alpha_se'])}",
                )
            ),
            "Answered": lambda e: formats.count(e["n"]),
        },
    )
    # Money is one purse for all categories.
    narrowed = "" if same.startswith("category") else f"&{same}"
    values = season.one(f"performance/?range=ALL{narrowed}")
    check_curves(page, season, f"{DATA}Mean total value of each family over time", values)
    until = same.partition("as_of=")[2] or "9"
    page.fact("Cohorts", formats.count(sum(row["started_at"] < until for row in season.rows("cohorts/"))))
    for chain in season.rows("chain/"):
        page.fact(f"{chain['protocol'].capitalize()}, {formats.plural(chain['length'], 'link')}", chain["head"])
    page.fact("Newest snapshot", formats.minute(values["as_of"]))
    page.skip("Next decision run", "Board computed")
    page.assert_compared(at_least=100)


def test_curves_end_at_what_the_board_says_and_whoever_has_finished_stays_in_them(season: SeasonApi) -> None:
    """Both at the newest snapshot: one read of totals and of what finished agents kept, one of every agent's worth."""
    assert "completed" in {row["status"] for row in season.rows("cohorts/")}
    entries = by(season.rows("leaderboard/"), "family")
    series = season.one("performance/?range=ALL")["series"]
    assert {(one["family"], one["points"][-1][1]) for one in series} == {
        (family, entry["total_value"]) for (family,), entry in entries.items()
    }


ALPHA = {
    "Alpha": lambda e: (
        "–" if e["forecaster"] == "market" else (formats.signed_score(e["alpha"]), formats.plus_minus(e["alpha_se"]))
    ),
}


@pytest.mark.parametrize(
    ("query", "of"),
    [("", ("priced", None)), ("?arm=blind", ("blind", None)), ("?category=Weather", ("priced", "Weather"))],
)
def test_the_forecast_board(season: SeasonApi, query: str, of: tuple[str, str | None]) -> None:
    page = season.page(f"/forecasts/{query}")
    ids = {(row["arm"], row["category"], row["methodology"]): row["id"] for row in season.rows("forecast-boards/")}
    board = season.one(f"forecast-boards/{ids[*of, None]}/")
    report, entries = board["report"], by(board["entries"], "display_name")
    same = "&".join(f"{name}={value}" for name, value in zip(("arm", "category"), of, strict=True) if value)
    assert season.rows(f"leaderboard/?protocol=forecast&{same}") == board["entries"]

    def entry(row: Row) -> Any:
        return entries[(row.cells["Forecaster"].text.removesuffix(" external"),)]

    page.table(
        "ranking",
        entry,
        {
            "Rank": lambda e: (
                ("", f"would be {e['rank']} {ranks(e)}") if e["reference"] else (str(e["rank"] or "–"), ranks(e))
            ),
            "Forecaster": NO_FIGURE,
            "Brier": lambda e: (formats.score(e["brier"]), formats.interval(e["brier_ci"])),
            **ALPHA,
            "Return": lambda e: (
                formats.score(e["average_return"]["0"]),
                formats.interval(e["average_return_ci"]["0"]),
            ),
            "Log": lambda e: formats.score(e["log"]),
            "Top option right": lambda e: formats.share(e["accuracy"]),
            "Questions": lambda e: formats.count(e["n"]),
            "Coverage": lambda e: formats.share(e["coverage"], 0),
            "Model cost": lambda e: formats.cost(e["cost_usd"]),
        },
        rows=len(entries),
    )
    page.table(
        "All other measures",
        entry,
        {
            "Forecaster": NO_FIGURE,
            "Spherical": lambda e: formats.score(e["spherical"]),
            "Skill, uniform": lambda e: formats.signed_score(e["bss_uniform"]),
            "Skill, market": lambda e: formats.signed_score(e["bss_market"]),
            "ECE": lambda e: (formats.score(e["ece"]), formats.score(e["ece_noise_floor"])),
            "Return ½ · 1": lambda e: formats.dots(e["average_return"]["0.5"], e["average_return"]["1"]),
            "Log wealth": lambda e: formats.signed_score(e["log_wealth"]["1"]),
            "Adjusted Brier": lambda e: formats.score(e["adjusted_brier"]),
            "Weighted Brier": lambda e: formats.score(e["weighted_brier"]),
            "IRT": lambda e: (formats.signed_score(e["irt_ability"]), formats.plus_minus(e["irt_se"])),
            "Bradley–Terry": lambda e: (formats.signed_score(e["bt_ability"]), formats.plus_minus(e["bt_se"])),
            "Pool weight": lambda e: formats.share(e["pool_weight"]),
            "Declined · refused": lambda e: f"{formats.count(e['declined'])} · {formats.count(e['refused'])}",
        },
        rows=len(entries),
    )
    names = {entry["forecaster"]: entry["display_name"] for entry in board["entries"]}
    pairs = {(names[pair["first"]], names[pair["second"]]): pair for pair in report["pairs"]}
    page.table(
        "pairs",
        lambda row: pairs[row.cells["First"].text, row.cells["Second"].text],
        {
            "First": NO_FIGURE,
            "Second": NO_FIGURE,
            "Forecasts": lambda p: formats.count(p["n"]),
            "Events": lambda p: formats.count(p["events"]),
            "Difference in Brier": lambda p: (formats.signed_score(p["difference"]), formats.plus_minus(p["se"])),
            "p, corrected": lambda p: formats.score(p["p_holm"]),
            "More needed": lambda p: formats.count(p["questions_more"]),
        },
    )
    words = by(report.get("forecasts_and_trades", []), "family")
    page.table(
        "words",
        lambda row: words[row.target(FAMILY)],
        {
            "Model": NO_FIGURE,
            "Bets": lambda w: (formats.count(w["bets"]), f"{formats.count(w['resolved'])} resolved"),
            "Said": lambda w: formats.share(w["stated"]),
            "Staked": lambda w: formats.share(w["confidence"]),
            "Price": lambda w: formats.share(w["price"]),
            "Over-betting": lambda w: (
                formats.signed_score(w["over_betting"]),
                formats.interval(w["over_betting_ci"], formats.signed_score, " to "),
            ),
            "Agreement": lambda w: formats.signed_score(w["spearman"]),
            "Own edge": lambda w: formats.share(w["positive_edge"]),
            "Stake follows": lambda w: formats.signed_score(w["stake_edge"]),
            "Brier said · staked · price": lambda w: formats.dots(w["stated_brier"], w["bet_brier"], w["market_brier"]),
            "Bets made": lambda w: formats.money(w["bet_return"]),
            "Kelly full · half": lambda w: formats.dots(w["kelly"]["full"], w["kelly"]["half"], write=formats.money),
        },
    )
    page.table(
        "agreement",
        lambda row: report["agreement"]["spearman"][row.cells["Measure"].text],
        {
            "Measure": NO_FIGURE,
            **{
                name: lambda line, name=name: formats.signed_score(line[name])
                for name in report["agreement"]["spearman"]
            },
        },
    )
    page.fact("Questions resolved", formats.count(report["data"]["questions"]))
    page.fact("Events", formats.count(report["data"]["events"]))
    page.fact("Forecasts scored", formats.count(report["data"]["forecasts"]))
    page.fact("Overround", formats.share(report["data"]["overround"]))
    page.fact("Board computed", formats.minute(board["computed_at"]))
    stream(page, report["curves"]["average_return"]["0"], names)
    bins = report["curves"]["reliability"]["forecasters"] | report["curves"]["reliability"]["references"]
    shown_there = [e for e in board["entries"] if not e["reference"] or e["forecaster"] in REFERENCES]
    expected = [e | {"bins": bins[e["forecaster"]]} for e in shown_there if bins.get(e["forecaster"])]
    assert calibration_squares(page) == [expected_square(row) for row in expected]
    page.skip("questions")  # compared on their own pages
    page.assert_compared(at_least=200)


REFERENCES = ("market", "uniform", "ensemble")
"""Those that charts show."""


def stream(page: Page, answer: Any, names: dict[str, str]) -> None:
    """Averaged returns as questions close: after each number of them, each forecaster's."""
    lines, slugs = answer["forecasters"] | answer["references"], {name: slug for slug, name in names.items()}
    rows = page.tables.pop(f"{DATA}Averaged return per dollar as questions close")
    assert [int(next(iter(row.cells.values())).text) for row in rows] == answer["questions"][::-1]
    for place, row in enumerate(reversed(rows)):
        for name, cell in list(row.cells.items())[1:]:
            page.compared += 1
            value = lines[slugs[name]][place]
            if cell.text != formats.score(None if value is None else round(value, 4)):
                page.faults.append(f"{page.address}: the return of {name} is {cell.text}, the API says {value}")
