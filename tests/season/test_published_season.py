"""The published season agrees with itself: chains, calibration, curves and the numbers in prose."""

import csv
import json
import re
from collections import Counter
from datetime import timedelta
from hashlib import sha256
from statistics import fmean

import pytest

from agents.models.family import EXTERNAL_WINDOW
from tests.markup import element, elements, visible_text
from tests.season import formats
from tests.season.season_api import SeasonApi

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PARTS = {
    "reliability": 1, "resolution": -1, "uncertainty": 1, "within_bin_variance": 1, "within_bin_covariance": -1,
}  # fmt: skip
"""How the parts make up a score."""


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_every_link_follows_the_one_before_it(season: SeasonApi) -> None:
    """From the first to the head that the front page, the rules and the proof show; those of tasks on their pages."""
    for chain in season.rows("chain/"):
        if chain["protocol"] == "receipt":
            bodies = [one["body"] for one in season.rows("receipts/")]
            hashes = [hashed(json.dumps(body, sort_keys=True, separators=(",", ":"))) for body in bodies]
            assert [body["previous"] for body in bodies] == ["0" * 64, *hashes[:-1]]
            assert (len(bodies), hashes[-1]) == (chain["length"], chain["head"])
            continue
        links = season.rows(f"chain-links/?protocol={chain['protocol']}")
        assert [one["sequence"] for one in links] == list(range(1, chain["length"] + 1))
        assert [one["previous"] for one in links] == ["0" * 64, *[one["sha256"] for one in links[:-1]]]
        assert all(one["sha256"] == hashed(f"{one['previous']}\n{one['record_sha256']}") for one in links)
        assert links[-1]["sha256"] == chain["head"]
    paths = {"decision": "decisions", "elicitation": "elicitations"}
    for task, path in paths.items():
        linked = {one[task] for one in season.rows("chain-links/") if one[task]}
        assert linked == {row["id"] for row in season.rows(f"{path}/?status=completed")}
        assert len(linked) > 50


def test_a_cohort_names_the_link_of_its_newest_decision(season: SeasonApi) -> None:
    for cohort in season.rows("cohorts/"):
        decision_ids = {row["id"] for row in season.rows(f"decisions/?cohort={cohort['number']}")}
        newest = [one for one in season.rows("chain-links/?protocol=trading") if one["decision"] in decision_ids][-1]
        place = f"{newest['sequence']:,}"
        text = f"The newest decision is link {place} of the chain, {cohort['chain_head']} ."
        assert text in visible_text(season.page(f"/cohorts/{cohort['number']}/"))
        assert newest["sha256"] == cohort["chain_head"]


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
            parts = sum(sign * row[part] for part, sign in PARTS.items())
            assert row["brier"] == pytest.approx(parts, abs=1e-9)
            assert sum(bin_row["weight"] for bin_row in row["bins"]) == pytest.approx(1)
    entries = {row["forecaster"]: row for row in season.rows("leaderboard/?protocol=forecast")}
    for row in answer["forecasts"]["forecasters"]:
        assert row["ece"] == entries[row["forecaster"]]["ece"]


def test_curves_end_at_what_the_board_says_and_whoever_has_finished_stays_in_them(season: SeasonApi) -> None:
    """Both at the newest snapshot: one read of totals and of what finished agents kept, one of every agent's worth."""
    assert "completed" in {row["status"] for row in season.rows("cohorts/")}
    entries = season.rows("leaderboard/")
    series = season.one("performance/?range=ALL")["series"]
    assert {(one["family"], one["points"][-1][1]) for one in series} == {
        (entry["family"], entry["total_value"]) for entry in entries
    }


def test_the_csv_of_the_leaderboard_is_its_json(season: SeasonApi) -> None:
    lines = season.client.get("/leaderboard.csv").text.splitlines()
    rows = {row["forecaster"]: row for row in csv.DictReader(lines)}
    entries = season.rows("leaderboard/?protocol=forecast")
    assert len(entries) > 8
    for entry in entries:
        numbers = [entry["brier"], *(entry["brier_ci"] or [None, None])]
        written = ["" if number is None else str(number) for number in numbers]
        assert [rows[entry["forecaster"]][name] for name in ("brier", "brier_low", "brier_high")] == written


def test_numbers_in_the_prose_about_the_arena_are_the_newest_rules(season: SeasonApi) -> None:
    published = [row for row in season.rows("methodologies/") if row["published_at"]]
    rules = max(published, key=lambda row: row["published_at"])
    prose = element(season.page("/about/"), "div.prose")
    cited = visible_text(elements(prose, "pre")[0])
    for part in prose.css("pre, dl"):
        part.decompose()
    words = visible_text(prose)
    window = EXTERNAL_WINDOW // timedelta(minutes=1)
    for text in (
        f"each with {formats.money(rules['starting_balance'])} of paper money",
        f"Once a week, {rules['decision_weeks']} week",
        "marked every ten minutes",
        f"Their deadline is {window} minutes after the freeze",
        "12 hours",
    ):
        assert text in words
    assert f"Forecaster Arena, methodology {rules['version']}. " in cited
    numbers = [formats.money(rules["starting_balance"])[1:], str(rules["decision_weeks"]), str(window), "12", "4.0"]
    assert Counter(re.findall(r"\d(?:[\d.,]*\d)?", words)) == Counter(numbers), "a number without an expectation"
