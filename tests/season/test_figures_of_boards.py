"""Every figure of the boards is the API's."""

from typing import Any

import pytest

from scoring.templatetags import arena
from tests.figures import WORDS, Page, Row, by
from tests.told import (
    DATA,
    FAMILY,
    Arena,
    closed,
    curves,
    diagrams,
    dots,
    drawn,
    half,
    instant_of,
    interval,
    many,
    plus_minus,
    ranks,
    text_of,
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
def test_the_leaderboard(shown: Arena, query: str, same: str) -> None:
    page = shown.page(f"/{query}")
    trading = by(shown.rows(f"leaderboard/?{same}"), "family")
    page.table(
        "ranking",
        lambda row: trading[row.target(FAMILY)],
        {
            "Rank": lambda e: (str(e["rank"] or "–"), ranks(e)),
            "Model": WORDS,
            "Return": lambda e: (arena.signed_percent(e["return_percent"]), half(e["return_ci"])),
            "Over time": WORDS,
            "Mean value": lambda e: (arena.money(e["total_value"]), many(e["cohorts"], "cohort")),
            "Brier": lambda e: (arena.score(e["brier"]), interval(e["brier_ci"])),
            "Win rate": lambda e: (arena.share(e["win_rate"]), many(e["resolved_bets"], "bet")),
            "Cost": lambda e: arena.cost(e["cost_usd"]),
        },
        rows=len(trading),
    )
    forecast = by(shown.rows(f"leaderboard/?protocol=forecast&{same}"), "display_name")
    page.table(
        "words",
        lambda row: forecast[(row.cells["Forecaster"].text.partition(" external")[0],)],
        {
            "Rank": lambda e: ("", f"({e['rank']})") if e["reference"] else (str(e["rank"] or "–"), ranks(e)),
            "Forecaster": WORDS,
            "Brier": lambda e: (arena.score(e["brier"]), interval(e["brier_ci"])),
            "Alpha": lambda e: (
                "–"
                if e["forecaster"] == "market"
                else (
                    arena.signed_score(e["alpha"]),
                    "" if e["alpha_se"] is None else f"± {arena.score(e['alpha_se'])}",
                )
            ),
            "Answered": lambda e: arena.count(e["n"]),
        },
    )
    # Money is one purse for all categories.
    narrowed = "" if same.startswith("category") else f"&{same}"
    values = shown.one(f"performance/?range=ALL{narrowed}")
    curves(page, shown, f"{DATA}Mean total value of each family over time", values)
    until = same.partition("as_of=")[2] or "9"
    page.fact("Cohorts", arena.count(sum(row["started_at"] < until for row in shown.rows("cohorts/"))))
    for chain in shown.rows("chain/"):
        page.fact(f"{chain['protocol'].capitalize()}, {many(chain['length'], 'link')}", chain["head"])
    page.fact("Newest snapshot", text_of(arena.when(instant_of(values["as_of"]))))
    page.words("Next decision run", "Board computed")
    closed(page, 100)


def test_curves_end_at_what_the_board_says_and_whoever_has_finished_stays_in_them(shown: Arena) -> None:
    """Both at the newest snapshot: one read of totals and of what finished agents kept, one of every agent's worth."""
    assert "completed" in {row["status"] for row in shown.rows("cohorts/")}
    entries = by(shown.rows("leaderboard/"), "family")
    series = shown.one("performance/?range=ALL")["series"]
    assert {(one["family"], one["points"][-1][1]) for one in series} == {
        (family, entry["total_value"]) for (family,), entry in entries.items()
    }


ALPHA = {
    "Alpha": lambda e: (
        "–" if e["forecaster"] == "market" else (arena.signed_score(e["alpha"]), plus_minus(e["alpha_se"]))
    ),
}


@pytest.mark.parametrize(
    ("query", "of"),
    [("", ("priced", None)), ("?arm=blind", ("blind", None)), ("?category=Weather", ("priced", "Weather"))],
)
def test_the_forecast_board(shown: Arena, query: str, of: tuple[str, str | None]) -> None:
    page = shown.page(f"/forecasts/{query}")
    ids = {(row["arm"], row["category"], row["methodology"]): row["id"] for row in shown.rows("forecast-boards/")}
    board = shown.one(f"forecast-boards/{ids[*of, None]}/")
    report, entries = board["report"], by(board["entries"], "display_name")
    same = "&".join(f"{name}={value}" for name, value in zip(("arm", "category"), of, strict=True) if value)
    assert shown.rows(f"leaderboard/?protocol=forecast&{same}") == board["entries"]

    def entry(row: Row) -> Any:
        return entries[(row.cells["Forecaster"].text.removesuffix(" external"),)]

    page.table(
        "ranking",
        entry,
        {
            "Rank": lambda e: (
                ("", f"would be {e['rank']} {ranks(e)}") if e["reference"] else (str(e["rank"] or "–"), ranks(e))
            ),
            "Forecaster": WORDS,
            "Brier": lambda e: (arena.score(e["brier"]), interval(e["brier_ci"])),
            **ALPHA,
            "Return": lambda e: (arena.score(e["average_return"]["0"]), interval(e["average_return_ci"]["0"])),
            "Log": lambda e: arena.score(e["log"]),
            "Top option right": lambda e: arena.share(e["accuracy"]),
            "Questions": lambda e: arena.count(e["n"]),
            "Coverage": lambda e: arena.share(e["coverage"], 0),
            "Model cost": lambda e: arena.cost(e["cost_usd"]),
        },
        rows=len(entries),
    )
    page.table(
        "All other measures",
        entry,
        {
            "Forecaster": WORDS,
            "Spherical": lambda e: arena.score(e["spherical"]),
            "Skill, uniform": lambda e: arena.signed_score(e["bss_uniform"]),
            "Skill, market": lambda e: arena.signed_score(e["bss_market"]),
            "ECE": lambda e: (arena.score(e["ece"]), arena.score(e["ece_noise_floor"])),
            "Return ½ · 1": lambda e: dots(e["average_return"]["0.5"], e["average_return"]["1"]),
            "Log wealth": lambda e: arena.signed_score(e["log_wealth"]["1"]),
            "Adjusted Brier": lambda e: arena.score(e["adjusted_brier"]),
            "Weighted Brier": lambda e: arena.score(e["weighted_brier"]),
            "IRT": lambda e: (arena.signed_score(e["irt_ability"]), plus_minus(e["irt_se"])),
            "Bradley–Terry": lambda e: (arena.signed_score(e["bt_ability"]), plus_minus(e["bt_se"])),
            "Pool weight": lambda e: arena.share(e["pool_weight"]),
            "Declined · refused": lambda e: f"{arena.count(e['declined'])} · {arena.count(e['refused'])}",
        },
        rows=len(entries),
    )
    names = {entry["forecaster"]: entry["display_name"] for entry in board["entries"]}
    pairs = {(names[pair["first"]], names[pair["second"]]): pair for pair in report["pairs"]}
    page.table(
        "pairs",
        lambda row: pairs[row.cells["First"].text, row.cells["Second"].text],
        {
            "First": WORDS,
            "Second": WORDS,
            "Forecasts": lambda p: arena.count(p["n"]),
            "Events": lambda p: arena.count(p["events"]),
            "Difference in Brier": lambda p: (arena.signed_score(p["difference"]), plus_minus(p["se"])),
            "p, corrected": lambda p: arena.score(p["p_holm"]),
            "More needed": lambda p: arena.count(p["questions_more"]),
        },
    )
    words = by(report.get("words_and_bets", []), "family")
    page.table(
        "words",
        lambda row: words[row.target(FAMILY)],
        {
            "Model": WORDS,
            "Bets": lambda w: (arena.count(w["bets"]), f"{arena.count(w['resolved'])} resolved"),
            "Said": lambda w: arena.share(w["stated"]),
            "Staked": lambda w: arena.share(w["confidence"]),
            "Price": lambda w: arena.share(w["price"]),
            "Over-betting": lambda w: (
                arena.signed_score(w["over_betting"]),
                interval(w["over_betting_ci"], arena.signed_score, " to "),
            ),
            "Agreement": lambda w: arena.signed_score(w["spearman"]),
            "Own edge": lambda w: arena.share(w["positive_edge"]),
            "Stake follows": lambda w: arena.signed_score(w["stake_edge"]),
            "Brier said · staked · price": lambda w: dots(w["stated_brier"], w["bet_brier"], w["market_brier"]),
            "Bets made": lambda w: arena.money(w["bet_return"]),
            "Kelly full · half": lambda w: dots(w["kelly"]["full"], w["kelly"]["half"], write=arena.money),
        },
    )
    page.table(
        "agreement",
        lambda row: report["agreement"]["spearman"][row.cells["Measure"].text],
        {
            "Measure": WORDS,
            **{
                name: lambda line, name=name: arena.signed_score(line[name]) for name in report["agreement"]["spearman"]
            },
        },
    )
    page.fact("Questions resolved", arena.count(report["data"]["questions"]))
    page.fact("Events", arena.count(report["data"]["events"]))
    page.fact("Forecasts scored", arena.count(report["data"]["forecasts"]))
    page.fact("Overround", arena.share(report["data"]["overround"]))
    page.fact("Board computed", text_of(arena.when(instant_of(board["computed_at"]))))
    stream(page, report["curves"]["average_return"]["0"], names)
    bins = report["curves"]["reliability"]["forecasters"] | report["curves"]["reliability"]["references"]
    shown_there = [e for e in board["entries"] if not e["reference"] or e["forecaster"] in REFERENCES]
    expected = [e | {"bins": bins[e["forecaster"]]} for e in shown_there if bins.get(e["forecaster"])]
    assert diagrams(page.markup) == [drawn(row) for row in expected]
    page.words("questions")  # compared on their own pages
    closed(page, 200)


REFERENCES = ("market", "uniform", "ensemble")
"""Those that charts show."""


def stream(page: Page, told: Any, names: dict[str, str]) -> None:
    """Averaged returns as questions close: after each number of them, each forecaster's."""
    lines, slugs = told["forecasters"] | told["references"], {name: slug for slug, name in names.items()}
    rows = page.tables.pop(f"{DATA}Averaged return per dollar as questions close")
    assert [int(next(iter(row.cells.values())).text) for row in rows] == told["questions"][::-1]
    for place, row in enumerate(reversed(rows)):
        for name, cell in list(row.cells.items())[1:]:
            page.compared += 1
            value = lines[slugs[name]][place]
            if cell.text != arena.score(None if value is None else round(value, 4)):
                page.faults.append(f"{page.address}: the return of {name} is {cell.text}, the API says {value}")
