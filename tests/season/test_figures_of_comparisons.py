"""Every figure of calibration, of comparisons and of the pages beside them is the API's."""

import re
from decimal import Decimal
from itertools import permutations
from statistics import fmean
from typing import Any

import pytest

from markets.models import Outcome
from tests.markup import chart_data, elements, visible_text
from tests.season import formats
from tests.season.page_figures import Page, by
from tests.season.season_api import (
    COHORT,
    DATA,
    FAMILY,
    MARKET,
    SeasonApi,
    calibration_squares,
    check_calls,
    check_chain_link,
    check_returns,
    expected_square,
    total,
)
from tests.selection import some_of_each, some_or_every

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

QUESTION = re.compile(r"/questions/(\d+)/")
PARTS = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")
SIGNS = (1, -1, 1, 1, -1)
"""How the parts make up a score."""

CALIBRATION = {
    "Probabilities": lambda record: formats.count(record["pairs"]),
    "ECE": lambda record: (formats.score(record["ece"]), formats.score(record["ece_noise_floor"])),
    "Brier": lambda record: formats.score(record["brier"]),
    "= Reliability": lambda record: formats.fine_score(record["reliability"]),
    "− Resolution": lambda record: formats.fine_score(record["resolution"]),
    "+ Uncertainty": lambda record: formats.fine_score(record["uncertainty"]),
    "+ Variance in bins": lambda record: formats.fine_score(record["within_bin_variance"]),
    "− Covariance in bins": lambda record: formats.fine_score(record["within_bin_covariance"]),
}


@pytest.mark.parametrize(
    "query",
    ["", "?arm=blind", "?category=Weather", "?methodology=v2", "?methodology=short", "?arm=blind&methodology=v2"],
)
def test_calibration(season: SeasonApi, query: str) -> None:
    page, answer = season.page(f"/calibration/{query}"), season.one(f"calibration/{query}")
    if rows := answer["forecasts"]["forecasters"]:
        label = "Calibration and decomposition of the Brier score"
        page.table(label, by(rows, "display_name"), CALIBRATION, "Forecaster", no_figure=["Forecaster"])
        assert calibration_squares(page, "stated-probabilities") == [expected_square(row) for row in rows]
    names = {slug: name for name, slug in season.names.items()}
    panels = [visible_text(panel, ".panel-title") for panel in elements(page.html, "#stakes-by-forecast .diagram")]
    assert panels == [names[s["family"]] for s in answer["stakes"]]
    for panel, bin_row in zip(
        chart_data(page.html, "stakes-by-forecast")["panels"] if panels else [], answer["stakes"], strict=True
    ):
        assert [point[:2] for point in panel["points"]] == [
            [round(x, 6) for x in point[:2]] for point in bin_row["points"]
        ]
    page.skip(f"{DATA}stakes-by-forecast")
    page.assert_compared(at_least=20 if rows else 0)  # the short methodology has bets alone


def test_calibration_follows_from_the_scores_that_are_published(season: SeasonApi) -> None:
    """Counted anew of the single rows: how many there are, what they come to, and that parts make the whole."""
    answer, scores = season.one("calibration/"), season.rows("brier-scores/")
    ours = [score for score in scores if score["family"] != "guest"]
    assert {row["forecaster"] for row in answer["trades"]["forecasters"]} == {s["family"] for s in scores} | {"market"}
    for row in answer["trades"]["forecasters"]:
        market = row["forecaster"] == "market"
        of_it = ours if market else [score for score in scores if score["family"] == row["family"]]
        probabilities = [score["market_probability" if market else "probability"] for score in of_it]
        squares = [(p - score["outcome"]) ** 2 for p, score in zip(probabilities, of_it, strict=True)]
        assert row["pairs"] == len(of_it) == sum(bin_row["pairs"] for bin_row in row["bins"])
        assert row["brier"] == pytest.approx(fmean(squares), abs=1e-12)
        for bin_row in row["bins"]:
            inside = [p for p in probabilities if bin_row["from"] <= p < bin_row["to"]]
            assert (len(inside), fmean(inside)) == (bin_row["pairs"], pytest.approx(bin_row["forecast"], abs=1e-12))
    for side in ("forecasts", "trades"):
        for row in answer[side]["forecasters"]:
            parts = sum(sign * row[part] for sign, part in zip(SIGNS, PARTS, strict=True))
            assert row["brier"] == pytest.approx(parts, abs=1e-9)
            assert sum(bin_row["weight"] for bin_row in row["bins"]) == pytest.approx(1)
    entries = by(season.rows("leaderboard/?protocol=forecast"), "forecaster")
    for row in answer["forecasts"]["forecasters"]:
        assert row["ece"] == entries[row["forecaster"],]["ece"]


TRADES = {
    "Mean return": ("return_percent", formats.signed_percent),
    "Rank": ("rank", formats.count),
    "Bet-sizing score": ("brier", formats.score),
    "Win rate": ("win_rate", formats.share),
    "Resolved bets": ("resolved_bets", formats.count),
    "Cohorts": ("cohorts", formats.count),
    "Model cost": ("cost_usd", formats.cost),
}
FORECASTS = {
    "Brier": ("brier", formats.score),
    "Rank": ("rank", formats.count),
    "Log score": ("log", formats.signed_score),
    "Alpha": ("alpha", formats.signed_score),
    "Adjusted Brier": ("adjusted_brier", formats.score),
    "Questions": ("n", formats.count),
    "Coverage": ("coverage", formats.share),
}
INTERVALS = {"return_percent": "return_ci"}
"""Where a figure's interval is not called after it."""


def check_pair(
    page: Page, label: str, figures: dict[str, Any], names: tuple[str, str], sides_of_pair: tuple[Any, Any]
) -> None:
    """Compares a table of figures with a column for each of two forecasters."""

    def column(row: Any) -> Any:
        return lambda figure: (
            figure[1](row[figure[0]]),
            formats.interval(row.get(INTERVALS.get(figure[0], f"{figure[0]}_ci")), figure[1], " to "),
        )

    columns = {name: column(row) for name, row in zip(names, sides_of_pair, strict=True)}
    page.table(label, {(name,): figure for name, figure in figures.items()}, columns, "Figure", no_figure=["Figure"])


def chance(p: float | None, of: str) -> str:
    if p is None:
        return ""
    return f"p {formats.p_value(p)}, corrected for {of}: {'significant' if p < 0.05 else 'not significant'}."


def trading_headline(answer: dict[str, Any], names: tuple[str, str], pairs: int) -> str:
    """The page's sentence on the test of two returns."""
    test = answer["trades"]["test"]
    if test is None:
        return "They have no common cohort yet."
    if test["cohorts"] < 6:
        return f"Too few cohorts Too few cohorts for a claim yet, {test['cohorts']} of the 6 that it needs."
    ahead = names[test["difference"] < 0]
    error = "" if test["margin"] is None else f" ± {formats.number(float(test['margin']))}"
    is_shown = test["p_holm"] is not None and test["p_holm"] < 0.05
    text = f"{ahead} is ahead " if is_shown else "No significant difference "
    text += f"{names[0]} minus {names[1]}: {formats.signed_number(test['difference'])}{error} percentage points over "
    text += f"{formats.plural(test['cohorts'], 'common cohort')} in {formats.plural(test['weeks'], 'calendar week')}. "
    return text + chance(test["p_holm"], formats.plural(pairs, "pair"))


def forecast_headline(answer: dict[str, Any], names: tuple[str, str]) -> str:
    """The page's sentence on the test of two Brier scores of forecasts that saw the prices."""
    test = answer["forecasts"][0]["test"]
    if test is None or not test["n"]:
        return "No question that both answered has resolved yet."
    is_shown = test["p_holm"] is not None and test["p_holm"] < 0.05
    ahead = f"{names[test['difference'] > 0]} is ahead" if is_shown else "No significant difference"
    if test["events"] < 10:
        ahead = "Too few events"
    return f"{ahead} with the market’s prices {forecast_sentences(test)}"


def forecast_sentences(test: dict[str, Any]) -> str:
    """The sentences on a test of two Brier scores, as far as the pace of the last weeks."""
    if test["events"] < 10:
        return f"Too few events for a claim yet, {test['events']} of the 10 that it needs."
    error = "" if test["margin"] is None else f" ± {formats.score(test['margin'])}"
    basis = f"{formats.plural(test['n'], 'common question')} of {formats.plural(test['events'], 'event')}"
    text = f"Difference in Brier score: {formats.signed_score(test['difference'])}{error} on {basis}. "
    if test["p_holm"] is None:
        return f"{text}The difference is the same on all events."
    text += chance(test["p_holm"], formats.plural(test["pairs"], "pair"))
    if test["p_holm"] < 0.05:
        return text
    if not test["questions_more"]:
        return f"{text} With this many questions we would probably have noticed a gap of 0.01; we did not."
    more = formats.plural(test["questions_more"], "more resolved question")
    return f"{text} {more} to notice a gap of 0.01 (80 % power)"


@some_or_every
def test_every_comparison(season: SeasonApi, of_each: int) -> None:
    """All pairs, one way round or the other; one of them both ways."""
    slugs = sorted(season.names.values())
    pairs = [(a, b) for a, b in permutations(slugs, 2) if (slugs.index(a) + slugs.index(b)) % 2 == (a < b)]
    assert len(pairs) == len(slugs) * (len(slugs) - 1) / 2
    for first, second in [*pairs[:of_each], pairs[0][::-1], pairs[-1]]:
        compared(season, first, second)


def compared(season: SeasonApi, first: str, second: str) -> None:
    page, answer = season.page(f"/compare/{first}/{second}/"), season.one(f"comparisons/{first}/{second}/")
    display = {slug: name for name, slug in season.names.items()}
    names = (display[first], display[second])
    assert (answer["first"], answer["second"]) == (first, second)
    entries = by(season.rows("leaderboard/"), "family")
    sides_of_trades = (answer["trades"]["first"], answer["trades"]["second"])
    assert sides_of_trades == (entries[first,], entries[second,])
    check_pair(page, "Trading figures", TRADES, names, sides_of_trades)
    assert [arm["arm"] for arm in answer["forecasts"]] == ["priced", "blind"]
    labels = iter([label for label in page.tables if label.startswith("Forecast figures")])
    for arm in answer["forecasts"]:
        board = by(season.rows(f"leaderboard/?protocol=forecast&arm={arm['arm']}"), "forecaster")
        assert (arm["first"], arm["second"]) == (board[first,], board[second,])
        check_pair(page, next(labels), FORECASTS, names, (arm["first"], arm["second"]))
        test = arm["test"]
        if test and test["n"]:
            assert forecast_sentences(test) in page.text
    verdicts = visible_text(page.html, ".headlines")
    pairs = answer["trades"]["test"]["pairs"] if answer["trades"]["test"] else 0
    assert trading_headline(answer, names, pairs) in verdicts
    assert forecast_headline(answer, names) in verdicts
    meetings = answer["trades"]["cohorts"]
    week_starts = {row["number"]: row["week_start"] for row in season.rows("cohorts/")}
    returns_by_cohort = [
        {a["cohort"]: a["pnl_percent"] for a in season.rows(f"agents/?family={slug}")} for slug in (first, second)
    ]
    columns = {
        "Started": lambda m: formats.day(week_starts[m["cohort"]]),
        names[0]: lambda m: formats.signed_percent(returns_by_cohort[0][m["cohort"]]),
        names[1]: lambda m: formats.signed_percent(m["second_return"]),
        "Difference": lambda m: formats.signed_number(m["first_return"] - m["second_return"]),
    }
    page.table("cohorts", by(meetings, "cohort"), columns, COHORT, no_figure=["Cohort"])
    for m in meetings:
        assert [m["first_return"], m["second_return"]] == pytest.approx(
            [float(of[m["cohort"]]) for of in returns_by_cohort]
        )
    assert answer["trades"]["first_ahead"] == sum(m["first_return"] > m["second_return"] for m in meetings)
    if meetings:
        ahead = [answer["trades"][f"{place}_ahead"] for place in ("first", "second")]
        assert (
            f"{names[0]} had the higher return in {ahead[0]}, {names[1]} in {ahead[1]} of {len(meetings)}." in page.text
        )
    markets = by(season.rows("markets/"), "id")
    against = by(answer["position_disagreements"]["largest"], "market")
    columns = {
        names[0]: lambda a: (a["first_side"], formats.money(a["first_amount"])),
        names[1]: lambda a: (a["second_side"], formats.money(a["second_amount"])),
        "Outcome": lambda a: a["winner"] or markets[str(a["market"]),]["status"],
    }
    page.table("position-disagreements", against, columns, MARKET, no_figure=["Market"])
    for a in against.values():
        for place, slug in (("first", first), ("second", second)):
            bought = season.rows(f"trades/?market={a['market']}&family={slug}&kind=BUY")
            by_side = [t for t in bought if t["side"] == a[f"{place}_side"]]
            assert formats.money(total(by_side, "amount")) == formats.money(a[f"{place}_amount"])
    columns = {
        "Date": lambda day: formats.day(day["day"]),
        "Option": lambda day: day["option"],
        names[0]: lambda day: formats.share(day["first"]),
        names[1]: lambda day: formats.share(day["second"]),
        "Market price": lambda day: formats.price(day["price"]),
        "Outcome": lambda day: (
            "cancelled" if day["cancelled"] else {None: "open", True: "yes", False: "no"}[day["happened"]]
        ),
    }
    page.table("disagreements", by(answer["disagreements"], "question"), columns, QUESTION, no_figure=["Question"])
    check_returns(page, season, [*season.rows(f"agents/?family={first}"), *season.rows(f"agents/?family={second}")])
    calibrated = by(season.one("calibration/")["forecasts"]["forecasters"], "forecaster")
    assert calibration_squares(page) == [
        expected_square(calibrated[slug,]) for slug in (first, second) if (slug,) in calibrated
    ]
    page.assert_compared(at_least=40)


def test_all_pairs(season: SeasonApi) -> None:
    page = season.page("/compare/")
    ours = {name: slug for name, slug in season.names.items() if slug != "guest"}

    def column(rival: str) -> Any:
        def cell(slug: str) -> Any:
            if slug == rival:
                return "·"
            test = season.one(f"comparisons/{slug}/{rival}/")["forecasts"][0]["test"]
            assert test["events"] < 10
            return "compare", "too few events"

        return cell

    columns = {name: column(slug) for name, slug in ours.items()}
    page.table("All pairs", {(name,): slug for name, slug in ours.items()}, columns, "Model", no_figure=["Model"])
    page.assert_compared(at_least=49)


def test_the_conditions(season: SeasonApi) -> None:
    page, rows = season.page("/conditions/"), season.rows("comparisons/conditions/")
    columns = {
        "Questions": lambda row: formats.count(row["n"]),
        "Events": lambda row: formats.count(row["events"]),
        "Difference in Brier score": lambda row: "too few events",
        "Corrected p": lambda row: "–",
    }
    assert max(row["events"] for row in rows) < 10
    page.table("pairs", rows, columns, no_figure=["Model", "Condition A", "Condition B"])
    names = {slug: name for name, slug in season.names.items()}
    assert [row["sentence"].startswith(names[row["family"]]) for row in rows] == [True] * len(rows)
    page.assert_compared(at_least=4)


def test_the_disagreements(season: SeasonApi) -> None:
    page, rows = season.page("/disagreements/"), season.rows("disagreements/")

    columns = {
        "Forecast": lambda row: formats.share(row["probability"]),
        "Market": lambda row: formats.share(row["price"]),
        "Ensemble": lambda row: formats.share(row["ensemble"]),
        "Difference": lambda row: formats.share(row["gap"]),
    }
    names = ["Question", "Option", "Model"]
    page.table("open", rows[:15], columns, no_figure=names)
    records: dict[tuple[str, ...], Any] = {}
    display_names = {slug: name for name, slug in season.names.items()}
    for row in rows:
        if row["compared"] is not None:
            records[display_names[row["family"]],] = row
    columns = {
        "Resolved questions": lambda row: formats.count(row["compared"]),
        "Model closer": lambda row: formats.count(row["model_closer"]),
        "Market closer": lambda row: formats.count(row["market_closer"]),
    }
    page.table("closer", records, columns, "Model", no_figure=["Model"], complete=False)
    page.assert_compared(at_least=20)


def test_every_universe(season: SeasonApi) -> None:
    markets, labels = by(season.rows("markets/"), "id"), dict(Outcome.PriceSource.choices)

    def prices(entry: Any) -> tuple[str, str]:
        sides = sorted(entry["prices"], key=lambda side: (side == "NO", side))
        sources = [entry["sources"].get(side) or {} for side in sides]
        stale = ["" if not source.get("stale") else ", stale" for source in sources]
        return (
            " ".join(f"{side} {formats.price(entry['prices'][side])}" for side in sides),
            " ".join(f"{labels[source['source']]}{s}" for source, s in zip(sources, stale, strict=True)),
        )

    columns = {
        "No.": lambda e: str(e["position"]),
        "Market": lambda e: (
            markets[str(e["market"]),]["question"],
            f"{markets[str(e['market']),]['category'] or '–'} · {e['source'].capitalize()} {e['external_id']}",
        ),
        "Prices and their sources": prices,
        "State": lambda e: "closed" if not e["open"] else "open" if e["bettable"] else "held only",
    }
    for listed in season.rows("universes/"):
        answer = season.one(f"universes/{listed['id']}/")
        assert {key: answer[key] for key in listed} == listed
        page, entries = season.page(f"/universes/{answer['id']}/"), by(answer["entries"], "market")
        page.table("Entries", entries, columns, MARKET)
        page.fact("Markets", formats.count(len(entries)))
        page.fact("Frozen", formats.minute(answer["frozen_at"]))
        page.fact("Methodology", answer["methodology"])
        assert answer["size"] == sum(entry["bettable"] for entry in answer["entries"])
        assert answer["sha256"] in page.text
        page.assert_compared(at_least=30)


@some_or_every
def test_every_batch_of_forecasts(season: SeasonApi, of_each: int) -> None:
    """A forecast of every batch that anybody answered, of each batch another question."""
    batches: dict[int, list[Any]] = {}
    for forecast in season.rows("forecasts/"):
        batches.setdefault(forecast["elicitation"], []).append(forecast)
    assert len(batches) > 50
    chosen_batches = [
        (batch, beside, beside[place % len(beside)]) for place, (batch, beside) in enumerate(sorted(batches.items()))
    ]
    for batch, beside, listed in some_of_each(chosen_batches, kind_of_batch, of_each):
        assert season.rows(f"forecasts/?elicitation={batch}") == beside
        answer = season.one(f"forecasts/{listed['id']}/")
        assert {key: answer[key] for key in listed} == listed
        elicitation = season.one(f"elicitations/{batch}/")
        question = season.one(f"questions/{answer['question']}/")
        (day_row,) = [day for day in question["days_asked"] if day["day"][:10] == answer["made_at"][:10]]
        page = season.page(f"/forecasts/{answer['id']}/")
        page.fact("Submitted", formats.minute(answer["made_at"]))
        market = "" if answer["market_brier"] is None else f"market {formats.score(answer['market_brier'])}"
        page.fact("Brier score", (formats.score(answer["brier"]), market))
        page.fact("Log score", formats.signed_score(answer["log"]))
        page.fact("Spherical score", formats.score(answer["spherical"]))
        page.fact("Methodology", answer["methodology"])
        page.fact("Release", answer["calls"][0]["model"])
        columns = {
            "Market price": lambda name, day_row=day_row: formats.price(day_row["prices"][name]["price"]),
            "Ask": lambda name, day_row=day_row: formats.price(day_row["prices"][name]["ask"]),
            "Stated": lambda name, answer=answer: answer["stated"][name],
            "Probability": lambda name, answer=answer: formats.share(answer["probabilities"][name]),
        }
        options = {(option["name"],): option["name"] for option in question["options"]}
        page.table("probabilities", options, columns, "Option", no_figure=["Option"])
        check_calls(page, answer["calls"])
        assert answer["calls"] == elicitation["calls"]
        cost, took = total(answer["calls"], "cost_usd"), stated(answer["calls"], "latency_ms")
        assert Decimal(elicitation["cost_usd"]) == cost
        number = formats.plural(len(beside) - 1, "other forecast")
        assert elicitation["tokens_input"] == total(answer["calls"], "tokens_input")
        tokens = [formats.count(stated(answer["calls"], name)) for name in ("tokens_input", "tokens_output")]
        line = f"{number} came with this one. Together they cost {formats.cost(cost)}, for {tokens[0]} tokens in and "
        assert f"{line}{tokens[1]} out, in {formats.seconds(took)}." in page.text
        check_chain_link(page, season, "elicitation", batch)
        page.assert_compared(at_least=14)


def kind_of_batch(batch: tuple[int, list[Any], Any]) -> tuple[Any, ...]:
    _, _, listed = batch
    return listed["arm"], listed["brier"] is None, listed["family"] == "guest"


def stated(calls: list[Any], key: str) -> Any:
    """The sum over calls; None where no call states any."""
    return total(calls, key) if any(call[key] is not None for call in calls) else None


def test_the_families(season: SeasonApi) -> None:
    page = season.page("/models/")
    families = by(season.rows("families/"), "slug")
    trading = by(season.rows("leaderboard/"), "family")
    forecast = by(season.rows("leaderboard/?protocol=forecast"), "forecaster")
    columns = {
        "Current release": lambda f: families[f]["release"],
        "Cohorts": lambda f: formats.count(len(season.rows(f"agents/?family={f[0]}"))),
        "Trading rank": lambda f: formats.count(trading[f]["rank"]),
        "Mean return": lambda f: formats.signed_percent(trading[f]["return_percent"]),
        "Forecast rank": lambda f: formats.count(forecast[f]["rank"]),
        "Brier score": lambda f: formats.score(forecast[f]["brier"]),
        "Questions": lambda f: formats.count(forecast[f]["n"]),
    }
    page.table("Models", {family: family for family in families}, columns, FAMILY, no_figure=["Model"])
    page.assert_compared(at_least=56)


def test_a_familys_cost(season: SeasonApi) -> None:
    columns = {
        "Completed": lambda p: formats.count(p["answered"]),
        "API calls": lambda p: formats.count(len(p["calls"])),
        "Tokens in": lambda p: formats.count(total(p["calls"], "tokens_input")),
        "Tokens out": lambda p: formats.count(total(p["calls"], "tokens_output")),
        "Cost": lambda p: (
            formats.cost(total(p["calls"], "cost_usd")),
            "" if p["stated"] == len(p["calls"]) else f"{formats.count(p['stated'])} reported by the gateway",
        ),
        "Cost per task": lambda p: formats.cost(
            total(p["calls"], "cost_usd") / p["answered"] if p["answered"] else None
        ),
    }
    for slug in season.names.values():
        page, protocols = season.page(f"/models/{slug}/"), {}
        for name, path in (("Trading", "decisions"), ("Forecast", "elicitations")):
            tasks = season.rows(f"{path}/?family={slug}")
            calls = [call for task in tasks for call in season.one(f"{path}/{task['id']}/")["calls"]]
            for key in ("tokens_input", "tokens_output", "cost_usd"):
                assert total(tasks, key) == total(calls, key)
            answered = sum(task["status"] == "completed" for task in tasks)
            stated_costs = sum(call["cost_source"] == "stated" for call in calls)
            if calls:
                protocols[name,] = {"calls": calls, "answered": answered, "stated": stated_costs}
        page.table("cost", protocols, columns, "Protocol", no_figure=["Protocol"])
        assert not page.faults, "\n".join(page.faults)
        assert page.compared >= 6 or slug == "guest"
