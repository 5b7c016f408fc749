"""Every figure of calibration, of comparisons and of the pages beside them is the API's."""

import html
import re
from decimal import Decimal
from itertools import permutations
from statistics import fmean
from typing import Any

import pytest

from markets.models import Outcome
from scoring.templatetags import arena
from tests.figures import WORDS, Page, Row, by, text
from tests.told import (
    DATA,
    FAMILY,
    MARKET,
    Arena,
    closed,
    curves,
    diagrams,
    dots,
    drawn,
    instant_of,
    interval,
    link,
    many,
    moment,
    plus_minus,
    ranks,
    text_of,
    total,
)

QUESTION = r"/questions/(\d+)/"
PARTS = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")
SIGNS = (1, -1, 1, 1, -1)
"""How the parts make up a score."""


@pytest.mark.parametrize(
    "query", ["", "?arm=blind", "?category=Weather", "?methodology=v2", "?methodology=v3", "?arm=blind&methodology=v2"]
)
def test_calibration(shown: Arena, query: str) -> None:
    page, told = shown.page(f"/calibration/{query}"), shown.one(f"calibration/{query}")
    sides = [told[side]["forecasters"] for side in ("words", "bets") if told[side]["forecasters"]]
    figures = [label for label in page.tables if label.startswith("Calibration and the parts")]
    bins = [label for label in page.tables if label.startswith("The bins")]
    assert len(sides) == len(figures) == len(bins) >= 1
    for rows, of_figures, of_bins in zip(sides, figures, bins, strict=True):
        named = by(rows, "display_name")
        page.table(
            of_figures,
            lambda row, named=named: named[(row.cells["Forecaster"].text.removesuffix(" external"),)],
            {
                "Forecaster": WORDS,
                "Pairs": lambda r: arena.count(r["pairs"]),
                "ECE": lambda r: (arena.score(r["ece"]), arena.score(r["ece_noise_floor"])),
                "Brier": lambda r: arena.score(r["brier"]),
                "= Reliability": lambda r: arena.fine_score(r["reliability"]),
                "− Resolution": lambda r: arena.fine_score(r["resolution"]),
                "+ Uncertainty": lambda r: arena.fine_score(r["uncertainty"]),
                "+ Variance in bins": lambda r: arena.fine_score(r["within_bin_variance"]),
                "− Covariance in bins": lambda r: arena.fine_score(r["within_bin_covariance"]),
            },
            rows=len(rows),
        )
        each_bin = iter([(row["display_name"], found) for row in rows for found in row["bins"]])
        page.table(
            of_bins,
            lambda row, each_bin=each_bin: next(each_bin),
            {
                "Forecaster": lambda b: b[0],
                "Bin": lambda b: interval((b[1]["from"], b[1]["to"])),
                "Said": lambda b: arena.score(b[1]["forecast"]),
                "Happened": lambda b: arena.score(b[1]["outcome"]),
                "95 % interval": lambda b: interval((b[1]["low"], b[1]["high"])),
                "Pairs": lambda b: arena.count(b[1]["pairs"]),
                "Share": lambda b: arena.share(b[1]["weight"]),
            },
            rows=sum(len(row["bins"]) for row in rows),
        )
    stakes = by(told["stakes"], "family")
    page.table(
        "stakes",
        lambda row: stakes[row.target(FAMILY)],
        {
            "Model": WORDS,
            "Bets": lambda s: arena.count(s["bets"]),
            "Said": lambda s: arena.share(s["stated"]),
            "Staked": lambda s: arena.share(s["confidence"]),
            "Over-betting": lambda s: (
                arena.signed_score(s["over_betting"]),
                interval(s["over_betting_ci"], arena.signed_score, " to "),
            ),
            "Agreement": lambda s: arena.signed_score(s["spearman"]),
            "Brier said · staked": lambda s: dots(s["stated_brier"], s["bet_brier"]),
        },
        rows=len(stakes),
    )
    expected = [drawn(row) for rows in sides for row in rows]
    squares = diagrams(page.markup)
    assert squares[: len(expected)] == expected
    names = {slug: name for name, slug in shown.names.items()}
    assert [name for name, _ in squares[len(expected) :]] == [names[s["family"]] for s in told["stakes"]]
    for each in told["stakes"]:
        correlation = text(arena.signed_score(each["spearman"]))
        bets = f"{arena.count(len(each['points']))} bets"
        said = f"{bets}, rank correlation of what was said and what was staked {correlation}"
        assert f'aria-label="{names[each["family"]]}: {said}"' in page.markup
    for side in ("words", "bets"):
        at = told[side]["computed_at"]
        assert at is None or f"Computed {text_of(arena.when(instant_of(at)))}" in text(page.markup)
    closed(page, 20)


def test_calibration_follows_from_the_scores_that_are_published(shown: Arena) -> None:
    """Counted anew of the single rows: how many there are, what they come to, and that parts make the whole."""
    told, scores = shown.one("calibration/"), shown.rows("brier-scores/")
    ours = [score for score in scores if score["family"] != "guest"]
    assert {row["forecaster"] for row in told["bets"]["forecasters"]} == {s["family"] for s in scores} | {"market"}
    for row in told["bets"]["forecasters"]:
        market = row["forecaster"] == "market"
        of_it = ours if market else [score for score in scores if score["family"] == row["family"]]
        said = [score["market_probability" if market else "probability"] for score in of_it]
        squares = [(p - score["outcome"]) ** 2 for p, score in zip(said, of_it, strict=True)]
        assert row["pairs"] == len(of_it) == sum(found["pairs"] for found in row["bins"])
        assert row["brier"] == pytest.approx(fmean(squares), abs=1e-12)
        for found in row["bins"]:
            inside = [p for p in said if found["from"] <= p < found["to"]]
            assert (len(inside), fmean(inside)) == (found["pairs"], pytest.approx(found["forecast"], abs=1e-12))
    for side in ("words", "bets"):
        for row in told[side]["forecasters"]:
            parts = sum(sign * row[part] for sign, part in zip(SIGNS, PARTS, strict=True))
            assert row["brier"] == pytest.approx(parts, abs=1e-9)
            assert sum(found["weight"] for found in row["bins"]) == pytest.approx(1)
    entries = by(shown.rows("leaderboard/?protocol=forecast"), "forecaster")
    for row in told["words"]["forecasters"]:
        assert row["ece"] == entries[row["forecaster"],]["ece"]


BETS = {
    "Mean return": ("return_percent", arena.signed_percent),
    "Rank": ("rank", arena.count),
    "Mean value": ("total_value", arena.money),
    "Brier, bet-implied": ("brier", arena.score),
    "Skill over the market": ("bss_market", arena.signed_score),
    "Win rate": ("win_rate", arena.share),
    "Resolved bets": ("resolved_bets", arena.count),
    "Cohorts": ("cohorts", arena.count),
    "Model cost": ("cost_usd", arena.cost),
}
SAID = {
    "Brier": ("brier", arena.score),
    "Rank": ("rank", arena.count),
    "Log score": ("log", arena.signed_score),
    "Alpha": ("alpha", arena.signed_score),
    "Top option right": ("accuracy", arena.share),
    "Calibration error": ("ece", arena.score),
    "Adjusted Brier": ("adjusted_brier", arena.score),
    "Ability, item response": ("irt_ability", arena.signed_score),
    "Questions": ("n", arena.count),
    "Coverage": ("coverage", arena.share),
}
INTERVALS = {"return_percent": "return_ci"}
"""Where a figure's interval is not called after it."""


def versus(page: Page, label: str, of: dict[str, Any], names: tuple[str, str], both: tuple[Any, Any]) -> None:
    """A table of figures of two: in each column those of one of them."""

    def figure(place: int, key: str, write: Any) -> Any:
        value, bounds = both[place][key], both[place].get(INTERVALS.get(key, f"{key}_ci"))
        return write(value), interval(bounds, write, " to ")

    page.table(
        label,
        lambda row: of[row.cells["Figure"].text],
        {
            "Figure": WORDS,
            names[0]: lambda each: figure(0, *each),
            names[1]: lambda each: figure(1, *each),
        },
        rows=len(of),
    )


def chance(p: float | None, of: str) -> str:
    if p is None:
        return ""
    return (
        f"p {arena.probability(p)}, corrected for {of} pairs: {'more than chance' if p < 0.05 else 'it may be chance'}."
    )


def by_bets(told: dict[str, Any], names: tuple[str, str], pairs: int) -> str:
    """What the page says of the test of two returns."""
    test = told["bets"]["test"]
    if test is None:
        return "They have played no cohort together yet."
    ahead = names[test["difference"] < 0]
    error = "" if test["se"] is None else f" ± {arena.number(test['se'])} (SE)"
    said = f"{ahead} ahead " if test["difference"] else "Even "
    said += f"{names[0]} less {names[1]}: {arena.signed_number(test['difference'])}{error} percentage points over "
    said += f"{many(test['cohorts'], 'common cohort')}. "
    said += chance(test["p_holm"], arena.count(pairs)) or "One cohort says nothing about spread."
    if test["p_holm"] is not None and test["cohorts_more"]:
        more = arena.count(test["cohorts_more"])
        said += f" About {more} more cohorts would be needed to find a true difference of 5 points."
    return said


def by_words(told: dict[str, Any], names: tuple[str, str]) -> str:
    """What the page says of the test of two Brier scores, shown the prices."""
    test = told["words"][0]["test"]
    if test is None or not test["n"]:
        return "No question that both answered has resolved yet."
    said = f"{names[test['difference'] > 0]} ahead " if test["difference"] else "Even "
    error = "" if test["se"] is None else f" ± {arena.score(test['se'])} (SE)"
    said += f"Difference in Brier score: {arena.signed_score(test['difference'])}{error} on {arena.count(test['n'])} "
    said += f"common forecasts of {arena.count(test['events'])} events. "
    if test["p_holm"] is None:
        return said + "Too few events for a test."
    said += chance(test["p_holm"], arena.count(test["pairs"]))
    if not test["questions_more"]:
        return f"{said} Enough questions to find a true difference of 0.01."
    more = arena.count(test["questions_more"])
    return f"{said} {more} more resolved questions would be needed to find a true difference of 0.01."


def test_every_comparison(shown: Arena) -> None:
    """All pairs, one way round or the other; one of them both ways."""
    slugs = sorted(shown.names.values())
    pairs = [(a, b) for a, b in permutations(slugs, 2) if (slugs.index(a) + slugs.index(b)) % 2 == (a < b)]
    assert len(pairs) == len(slugs) * (len(slugs) - 1) / 2
    for first, second in [*pairs, pairs[0][::-1]]:
        compared(shown, first, second)


def compared(shown: Arena, first: str, second: str) -> None:
    page, told = shown.page(f"/compare/{first}/{second}/"), shown.one(f"comparisons/{first}/{second}/")
    display = {slug: name for name, slug in shown.names.items()}
    names = (display[first], display[second])
    assert (told["first"], told["second"]) == (first, second)
    entries = by(shown.rows("leaderboard/"), "family")
    both = (told["bets"]["first"], told["bets"]["second"])
    assert both == (entries[first,], entries[second,])
    versus(page, "Figures by their bets", BETS, names, both)
    assert [words["arm"] for words in told["words"]] == ["priced", "blind"]
    labels = iter([label for label in page.tables if label.startswith("Figures by their words")])
    for words in told["words"]:
        said = by(shown.rows(f"leaderboard/?protocol=forecast&arm={words['arm']}"), "forecaster")
        assert (words["first"], words["second"]) == (said[first,], said[second,])
        versus(page, next(labels), SAID, names, (words["first"], words["second"]))
        test = words["test"]
        if test and test["n"]:
            line = f"On {arena.count(test['n'])} common forecasts: {arena.signed_score(test['difference'])}"
            line += "" if test["se"] is None else f" {plus_minus(test['se'])}"
            line += f", p {arena.probability(test['p_holm'])} corrected, "
            assert f"{line}{arena.count(test['questions_more'])} more questions needed for 0.01." in text(page.markup)
    verdicts = text(re.findall(r'<div class="verdicts">.*?</section|<div class="verdicts">.*', page.markup, re.S)[0])
    pairs = told["bets"]["test"]["pairs"] if told["bets"]["test"] else 0
    assert text(by_bets(told, names, pairs)) in verdicts
    assert text(by_words(told, names)) in verdicts
    cohorts = by(told["bets"]["cohorts"], "cohort")
    started = by(shown.rows("cohorts/"), "number")
    own = {slug: by(shown.rows(f"agents/?family={slug}"), "cohort") for slug in (first, second)}
    page.table(
        "cohorts",
        lambda row: cohorts[row.target(r"/cohorts/(\d+)/")],
        {
            "Cohort": WORDS,
            "Started": lambda m: text_of(arena.day(instant_of(started[str(m["cohort"]),]["week_start"]))),
            names[0]: lambda m: arena.signed_percent(own[first][str(m["cohort"]),]["pnl_percent"]),
            names[1]: lambda m: arena.signed_percent(m["second_return"]),
            "Difference": lambda m: arena.signed_number(m["first_return"] - m["second_return"]),
        },
        rows=len(cohorts),
    )
    for m in told["bets"]["cohorts"]:
        returns = [float(own[slug][str(m["cohort"]),]["pnl_percent"]) for slug in (first, second)]
        assert [m["first_return"], m["second_return"]] == pytest.approx(returns)
    ahead = [m["first_return"] > m["second_return"] for m in told["bets"]["cohorts"]]
    assert told["bets"]["first_ahead"] == sum(ahead)
    if cohorts:
        line = (
            f"{names[0]} was ahead in {told['bets']['first_ahead']}, {names[1]} in {told['bets']['second_ahead']} of "
        )
        assert f"{line}{len(cohorts)}." in text(page.markup)
    markets = by(shown.rows("markets/"), "id")
    against = by(told["opposed"]["most"], "market")
    page.table(
        "opposed",
        lambda row: against[row.target(MARKET)],
        {
            "Market": WORDS,
            names[0]: lambda a: (a["first_side"], arena.money(a["first_amount"])),
            names[1]: lambda a: (a["second_side"], arena.money(a["second_amount"])),
            "Came to": lambda a: a["winner"] or markets[str(a["market"]),]["status"],
        },
        rows=len(against),
    )
    for a in against.values():
        for place, slug in (("first", first), ("second", second)):
            bought = shown.rows(f"trades/?market={a['market']}&family={slug}&kind=BUY")
            by_side = [t for t in bought if t["side"] == a[f"{place}_side"]]
            assert arena.money(total(by_side, "amount")) == arena.money(a[f"{place}_amount"])
    page.table(
        "disagreements",
        lambda row: by(told["disagreements"], "question")[row.target(QUESTION)],
        {
            "Question": WORDS,
            "Asked": lambda d: text_of(arena.day(instant_of(d["day"]))),
            "Option": lambda d: d["option"],
            names[0]: lambda d: arena.share(d["first"]),
            names[1]: lambda d: arena.share(d["second"]),
            "Market": lambda d: arena.share(d["price"]),
            "Happened": lambda d: {None: "open", True: "yes", False: "no"}[d["happened"]],
        },
        rows=len(told["disagreements"]),
    )
    one, other = (shown.one(f"performance/?range=ALL&family={slug}") for slug in (first, second))
    whole = {name: [*one[name], *other[name]] for name in ("series", "release_changes")}
    curves(page, shown, f"{DATA}Mean total value of both over time", whole)
    calibrated = by(shown.one("calibration/")["words"]["forecasters"], "forecaster")
    assert diagrams(page.markup) == [drawn(calibrated[slug,]) for slug in (first, second) if (slug,) in calibrated]
    closed(page, 40)


def test_all_pairs(shown: Arena) -> None:
    page = shown.page("/compare/")
    ours = {name: slug for name, slug in shown.names.items() if slug != "guest"}

    def cell(row: Row, other: str) -> Any:
        one = ours[row.cells["Model"].text]
        if one == ours[other]:
            return "·"
        test = shown.one(f"comparisons/{one}/{ours[other]}/")["words"][0]["test"]
        return arena.signed_score(test["difference"]), f"p {arena.probability(test['p_holm'])}"

    columns: dict[str, Any] = {name: lambda row, name=name: cell(row, name) for name in ours}
    page.table("All pairs", lambda row: row, {"Model": WORDS, **columns}, rows=len(ours))
    closed(page, 49)


def test_every_universe(shown: Arena) -> None:
    markets, labels = by(shown.rows("markets/"), "id"), dict(Outcome.PriceSource.choices)
    for listed in shown.rows("universes/"):
        told = shown.one(f"universes/{listed['id']}/")
        assert {key: told[key] for key in listed} == listed
        page = shown.page(f"/universes/{told['id']}/")
        entries = by(told["entries"], "market")

        def prices(entry: Any) -> tuple[str, str]:
            sides = sorted(entry["prices"], key=lambda side: (side == "NO", side))
            sources = [entry["sources"].get(side) or {} for side in sides]
            stale = ["" if not source.get("stale") else ", stale" for source in sources]
            return (
                " ".join(f"{side} {arena.price(entry['prices'][side])}" for side in sides),
                " ".join(f"{labels[source['source']]}{s}" for source, s in zip(sources, stale, strict=True)),
            )

        page.table(
            "Entries",
            lambda row, entries=entries: entries[row.target(MARKET)],
            {
                "No.": lambda e: str(e["position"]),
                "Market": lambda e: (
                    html.escape(markets[str(e["market"]),]["question"]),
                    f"{markets[str(e['market']),]['category'] or '–'} · {e['source']} {e['external_id']}",
                ),
                "Prices and their sources": prices,
                "State": lambda e: "closed" if not e["open"] else "open" if e["bettable"] else "held besides",
            },
            rows=len(entries),
        )
        page.fact("Markets", arena.count(len(entries)))
        page.fact("Frozen", text_of(arena.when(instant_of(told["frozen_at"]))))
        page.fact("Rules", told["methodology"])
        assert told["size"] == sum(entry["bettable"] for entry in told["entries"])
        assert told["sha256"] in page.markup
        closed(page, 30)


def test_every_sheet_of_forecasts(shown: Arena) -> None:
    """A forecast of every sheet that anybody answered, of each sheet another question."""
    sheets: dict[int, list[Any]] = {}
    for forecast in shown.rows("forecasts/"):
        sheets.setdefault(forecast["elicitation"], []).append(forecast)
    assert len(sheets) > 50
    for place, (sheet, beside) in enumerate(sorted(sheets.items())):
        listed = beside[place % len(beside)]
        assert shown.rows(f"forecasts/?elicitation={sheet}") == beside
        told = shown.one(f"forecasts/{listed['id']}/")
        assert {key: told[key] for key in listed} == listed
        elicitation = shown.one(f"elicitations/{sheet}/")
        question = shown.one(f"questions/{told['question']}/")
        (asked,) = [each for each in question["asked"] if each["day"][:10] == told["made_at"][:10]]
        page = shown.page(f"/forecasts/{told['id']}/")
        page.fact("Made", text_of(arena.when(instant_of(told["made_at"]))))
        market = "" if told["market_brier"] is None else f"market {arena.score(told['market_brier'])}"
        page.fact("Brier, mean form", (arena.score(told["brier"]), market))
        page.fact("Log score", arena.signed_score(told["log"]))
        page.fact("Spherical", arena.score(told["spherical"]))
        page.fact("Rules", told["methodology"])
        page.fact("Release", told["calls"][0]["model"])
        options = by(question["options"], "name")
        page.table(
            "stated",
            lambda row, options=options: options[(row.cells["Option"].text.removesuffix(" happened"),)],
            {
                "Option": WORDS,
                "Market then": lambda o, asked=asked: arena.price(asked["prices"][o["name"]]["price"]),
                "Ask": lambda o, asked=asked: arena.price(asked["prices"][o["name"]]["ask"]),
                "As written": lambda o, told=told: told["stated"][o["name"]],
                "Probability": lambda o, told=told: arena.share(told["probabilities"][o["name"]]),
            },
            rows=len(options),
        )
        calls_of(page, told["calls"])
        assert told["calls"] == elicitation["calls"]
        cost, took = total(told["calls"], "cost_usd"), sum(call["latency_ms"] or 0 for call in told["calls"])
        assert Decimal(elicitation["cost_usd"]) == cost
        others = many(len(beside) - 1, "other forecast")
        assert elicitation["tokens_input"] == total(told["calls"], "tokens_input")
        tokens = [arena.count(stated(told["calls"], name)) for name in ("tokens_input", "tokens_output")]
        line = f"{others} came with this one. Together they cost {arena.cost(cost)}, for {tokens[0]} tokens in and "
        assert text(f"{line}{tokens[1]} out, in {arena.seconds(took)}.") in text(page.markup)
        link(page, shown, "elicitation", sheet)
        closed(page, 14)


def stated(calls: list[Any], key: str) -> Any:
    """The sum over calls; None where no call states any."""
    return total(calls, key) if any(call[key] is not None for call in calls) else None


def calls_of(page: Page, calls: list[Any]) -> None:
    numbered = by(calls, "sequence")
    page.table(
        "calls",
        lambda row: numbered[(row.cells["#"].text,)],
        {
            "#": WORDS,
            "Result": WORDS,
            "Asked": lambda c: c["model"],
            "Answered by": lambda c: (arena.text(c["returned_model"]), c["provider"] or ""),
            "Tokens in / out": lambda c: " / ".join(map(arena.count, (c["tokens_input"], c["tokens_output"]))),
            "Cost": lambda c: (
                arena.cost(c["cost_usd"]),
                "by tokens × price" if not c["cost_stated"] and c["tokens_input"] is not None else "",
            ),
            "Took": lambda c: arena.seconds(c["latency_ms"]),
            "Sent": lambda c: text_of(arena.when(moment(c["sent_at"]))),
            "Error": WORDS,
        },
        rows=len(calls),
    )


def test_the_families(shown: Arena) -> None:
    page = shown.page("/models/")
    families = by(shown.rows("families/"), "slug")
    trading = by(shown.rows("leaderboard/"), "family")
    forecast = by(shown.rows("leaderboard/?protocol=forecast"), "forecaster")
    page.table(
        "Models",
        lambda row: row.target(FAMILY),
        {
            "Family": WORDS,
            "Release now": lambda f: families[f]["release"],
            "Cohorts": lambda f: arena.count(len(shown.rows(f"agents/?family={f[0]}"))),
            "Rank by return": lambda f: arena.count(trading[f]["rank"]),
            "Mean return": lambda f: arena.signed_percent(trading[f]["return_percent"]),
            "Brier of bets": lambda f: arena.score(trading[f]["brier"]),
            "Rank by forecasts": lambda f: arena.count(forecast[f]["rank"]),
            "Brier of forecasts": lambda f: arena.score(forecast[f]["brier"]),
            "Questions": lambda f: arena.count(forecast[f]["n"]),
        },
        rows=len(families),
    )
    closed(page, 60)


def test_the_imports(shown: Arena) -> None:
    collections = by(shown.rows("imports/"), "slug")
    page = shown.page("/imports/")
    page.table(
        "Collections",
        lambda row: collections[row.target(r"/imports/([^/]+)/")],
        {
            "Collection": lambda c: c["name"],
            "Forecasters": lambda c: arena.count(c["forecasters"]),
            "Questions": lambda c: arena.count(c["questions"]),
            "Open": lambda c: arena.count(c["open_questions"]),
            "Probabilities": lambda c: arena.count(c["probabilities"]),
            "Changed": lambda c: text_of(arena.when(instant_of(c["changed_at"]))),
        },
        rows=len(collections),
    )
    closed(page, 6)


def test_an_import(shown: Arena) -> None:
    page, told = shown.page("/imports/others/"), shown.one("imports/others/")
    board = told["board"]
    page.fact("Forecasters", arena.count(told["forecasters"]))
    page.fact("Questions", arena.count(told["questions"]))
    page.fact("Scored", arena.count(board["data"]["questions"]))
    page.fact("Open", arena.count(told["open_questions"]))
    page.fact("Board computed", text_of(arena.when(instant_of(told["computed_at"]))))
    order = board["rankings"]["brier"]
    rows = {**board["forecasters"], **board["references"]}

    def rank(name: str) -> Any:
        if name not in order:
            return ""
        low, high = rows[name]["rank_range"]
        return str(order.index(name) + 1), ranks({"rank_low": low, "rank_high": high})

    def net(name: str) -> str:
        gross = (rows[name]["average_return"] or {}).get("0")
        return arena.signed_percent(None if gross is None else 100 * (gross - 1))

    page.table(
        "ranking",
        lambda row: row.cells["Forecaster"].text,
        {
            "Rank": rank,
            "Forecaster": WORDS,
            "Brier": lambda n: (arena.score(rows[n]["brier"]), interval(rows[n]["brier_ci"])),
            "Adjusted": lambda n: arena.score(rows[n]["adjusted_brier"]),
            "Log": lambda n: arena.signed_score(rows[n]["log"]),
            "Accuracy": lambda n: arena.share(rows[n]["accuracy"]),
            "Return": net,
            "Alpha": lambda n: arena.signed_score(rows[n]["alpha"]),
            "ECE": lambda n: arena.score(rows[n]["ece"]),
            "Answered": lambda n: (arena.count(rows[n]["n"]), arena.share(rows[n]["coverage"])),
        },
        rows=len(rows),
    )
    categories: dict[str, Any] = {
        name: lambda n, name=name: arena.score(rows[n]["brier_by_category"].get(name)) for name in ("rain", "wind")
    }
    page.table("categories", lambda row: row.cells["Forecaster"].text, {"Forecaster": WORDS, **categories})
    (made,) = told["imports"]
    page.table(
        "provenance",
        lambda row: made,
        {
            "Files": lambda m: (m["files"][0]["name"], f"SHA-256 {m['files'][0]['sha256']}"),
            "Format": lambda m: m["format"],
            "Imported": lambda m: text_of(arena.when(instant_of(m["imported_at"]))),
            "Rows": lambda m: arena.count(m["rows"]),
            "Rejected": lambda m: arena.count(m["rejected"]),
            "Probabilities": lambda m: arena.count(m["forecasts"]),
        },
        rows=1,
    )
    rejected = iter(made["rejections"])
    page.table(
        "Rejected rows of others.csv",
        lambda row: next(rejected),
        {"Row": lambda r: str(r["row"]), "Why": lambda r: r["why"]},
        rows=made["rejected"],
    )
    closed(page, 40)


def test_a_familys_cost(shown: Arena) -> None:
    for slug in shown.names.values():
        page = shown.page(f"/models/{slug}/")
        tasks = {"Trading": shown.rows(f"decisions/?family={slug}")}
        tasks["Forecast"] = shown.rows(f"elicitations/?family={slug}")
        paths = {"Trading": "decisions", "Forecast": "elicitations"}
        calls = {
            name: [call for row in rows for call in shown.one(f"{paths[name]}/{row['id']}/")["calls"]]
            for name, rows in tasks.items()
        }

        def cost(name: str, calls: Any = calls) -> Any:
            stated = sum(call["cost_stated"] for call in calls[name])
            small = "" if stated == len(calls[name]) else f"{arena.count(stated)} named by the gateway"
            return arena.cost(total(calls[name], "cost_usd")), small

        def answered(name: str, tasks: Any = tasks) -> int:
            return sum(row["status"] == "completed" for row in tasks[name])

        page.table(
            "cost",
            lambda row: row.cells["Protocol"].text,
            {
                "Protocol": WORDS,
                "Answered": lambda n, answered=answered: arena.count(answered(n)),
                "Requests": lambda n, calls=calls: arena.count(len(calls[n])),
                "Tokens in": lambda n, calls=calls: arena.count(total(calls[n], "tokens_input")),
                "Tokens out": lambda n, calls=calls: arena.count(total(calls[n], "tokens_output")),
                "Cost": cost,
                "Each": lambda n, calls=calls, answered=answered: arena.cost(
                    total(calls[n], "cost_usd") / answered(n) if answered(n) else None
                ),
            },
            rows=sum(bool(made) for made in calls.values()),
        )
        for name, rows in tasks.items():
            for key in ("tokens_input", "tokens_output", "cost_usd"):
                assert total(rows, key) == total(calls[name], key)
        assert not page.faults, "\n".join(page.faults)
        assert page.compared >= 6 or slug == "guest"
