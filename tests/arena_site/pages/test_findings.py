"""The findings in sentences, and their page."""

import re
import struct
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from arena_site.pages.findings import statement
from scoring.selectors.findings import Finding
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import element, elements, get_page, links, visible_text

pytestmark = pytest.mark.django_db
FINDING = ".findings > li"


def sentence(topic: str, estimate: float, low: float, high: float, **changes: Any) -> str:
    values: dict[str, Any] = {
        "first": "GPT-5.2",
        "second": "Grok 4.1",
        "number": 1270,
        "p": None,
        "questions_more": None,
    }
    details = {"condition": "when shown the market’s prices", **changes.pop("details", {})}
    finding = Finding(topic=topic, estimate=estimate, low=low, high=high, details=details, **values | changes)
    return statement(finding).sentence.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("text", "topic", "bounds", "changes"),
    [
        (
            "GPT-5.2, the model with the lowest adjusted Brier score, forecasts better than the market’s prices when"
            " shown the market’s prices: its Brier score is 0.020 lower (95 % interval 0.010 to 0.030 on 1,270 resolved"
            " questions, corrected p = 0.010).",
            "market", (0.02, 0.01, 0.03), {"p": 0.01, "details": {"ranked_by": "adjusted_brier"}},
        ),
        (
            "The mean forecast of the models is worse than the market’s prices when shown the market’s prices: its"
            " Brier score is 0.020 higher (95 % interval 0.010 to 0.030 on 1,270 resolved questions, corrected"
            " p = 0.010).",
            "ensemble", (-0.02, -0.03, -0.01), {"p": 0.01},
        ),
        (
            "GPT-5.2 does not forecast significantly better or worse than Grok 4.1 when shown the market’s prices: the"
            " difference in Brier score is 0.020 (95 % interval −0.010 to 0.050 on 1,270 resolved questions, corrected"
                " p = 0.300); about 42 more"
            " resolved questions are needed (3 weeks at the pace of the last four) to find a true difference of 0.01"
            " with a probability of 80 %.",
            "runner-up", (0.02, -0.01, 0.05), {"p": 0.3, "questions_more": 42, "weeks_more": 3},
        ),
        (
            "GPT-5.2 forecasts better than Grok 4.1 when shown the market’s prices: its Brier score is 0.020 lower (95"
            " % interval 0.010 to 0.030 on 1,270 resolved questions, corrected p < 0.001).",
            "worst", (0.02, 0.01, 0.03), {"p": 0.0},
        ),
        (
            "Seeing the market’s prices makes no significant difference to the models’ forecasts: their mean Brier"
            " score differs by 0.020 (95 % interval −0.010 to 0.050 on 1,270 resolved questions, corrected"
            " p = 0.300). With this many questions we would probably have noticed a gap of 0.01; we did not.",
            "prices", (0.02, -0.01, 0.05), {"p": 0.3, "questions_more": 0},
        ),
        (
            "6 of 7 models stake significantly less than Kelly’s rule would at the prices they paid and their own"
            " forecasts when shown the market’s prices, most clearly GPT-5.2: a bet takes 5.0 % of its cash"
            " on average, Kelly’s rule 20.0 % (difference 15.0 percentage points, 95 % interval 10.0 to 20.0 on"
            " 1,270 bets, corrected p = 0.010).",
            "stakes", (-0.15, -0.2, -0.1),
            {"p": 0.01, "details": {"below": list("abcdef"), "above": [], "models": 7, "stake": 0.05, "kelly": 0.2}},
        ),
        (
            "No model is shown to earn or to lose money: the mean return of GPT-5.2 is +2.00 % (95 % interval,"
            " corrected for all models, −1.00 % to +5.00 % over 6 cohorts, corrected p = 0.300); only more cohorts can"
            " tell.",
            "profit", (2.0, -1.0, 5.0), {"number": 6, "p": 0.3, "details": {"ages": [], "above": [], "below": []}},
        ),
        (
            "GPT-5.2 and Kimi K2 earn money on paper and Grok 4.1 loses money on paper: the mean return of GPT-5.2 is"
            " +2.00 % (95 % interval, corrected for all models, +1.00 % to +3.00 % over 8 cohorts, 2 unfinished, 1 to"
            " 4 weeks old, corrected p = 0.001).",
            "profit", (2.0, 1.0, 3.0),
            {
                "number": 8, "p": 0.001,
                "details": {"ages": [1, 4], "above": ["GPT-5.2", "Kimi K2"], "below": ["Grok 4.1"]},
            },
        ),
        (
            "The best model and the market: too few events for a claim yet, 7 of the 10 that it needs.",
            "market", (0.02, 0.02, 0.02), {"basis": 7, "freedom": 5.0},
        ),
        (
            "Who earns money: too few cohorts for a claim yet, 3 of the 6 that it needs.",
            "profit", (2.0, 2.0, 2.0), {"basis": 3, "freedom": 2.0},
        ),
        (
            "Who earns money: too few weeks for a claim yet, in effect 1.6 of the 3 that it needs.",
            "profit", (2.0, 2.0, 2.0), {"basis": 6, "freedom": 1.69},
        ),
        (
            "The best and the worst model: no test yet, since all differences are alike.",
            "worst", (0.02, 0.02, 0.02), {"basis": 12, "freedom": 11.0},
        ),
    ],
)  # fmt: skip
def test_sentences(text: str, topic: str, bounds: tuple[float, float, float], changes: dict[str, Any]) -> None:
    assert sentence(topic, *bounds, **changes) == text


def resolve_questions(first: int, last: int, *, best: float, days: int) -> None:
    """Questions that resolve to YES after so many days, for which GPT stated `best` and Grok less."""
    for number in range(first, last):
        question = QuestionFactory(markets=[MarketFactory(question=f"Will it snow in town {number}?")])
        p = best + number / 1000
        ask(question, {"gpt-5.1": [p, 1 - p], "grok-4": [p - 0.2, 1.2 - p]}, day=WEEK + timedelta(days=days - 1))
        end_question(question, "YES", at=WEEK + timedelta(days=days))
    compute_scores(at=WEEK + timedelta(days=days + 1))


def test_finding_has_an_anchor_a_chart_with_its_files_and_a_link_that_copies_its_sentence(client: Client) -> None:
    resolve_questions(0, 12, best=0.8, days=3)
    page = get_page(client, "/findings/")
    assert [visible_text(link) for link in elements(page, "nav [aria-current]")] == ["Leaderboard", "Findings"]
    items = elements(page, FINDING)
    assert {"market", "worst"} <= {item.attributes["id"] for item in items}
    for item in items:
        topic, words = item.attributes["id"], visible_text(item, "figcaption")
        figure = element(item, "figure")
        assert len(elements(figure, "svg .interval")) == 1
        assert len(elements(figure, "svg .baseline")) == 1
        label = element(figure, ".head text").attributes
        anchor, place = label["text-anchor"], float((label["x"] or "").rstrip("%"))
        assert anchor == ("start" if place < 20 else "end" if place > 85 else "middle"), "a phone cuts the label"
        copy = element(figure, "a[data-copy]").attributes
        assert " ".join((copy["data-copy"] or "").split()) == words
        assert re.fullmatch(rf"/findings/\?finding={topic}(&methodology=v2)?#{topic}", copy["href"] or "")
        assert f"/findings/charts/{topic}.svg?finding={topic}" in visible_text(figure, ".image-code pre")
        files = [link for link in links(figure, ".source a") if "/charts/" in link]
        assert files == [f"/findings/charts/{topic}.{extension}" for extension in ("csv", "png", "svg")]
        assert [client.get(file).status_code for file in files] == [200] * 3


def test_copied_finding_of_a_demo_says_so(client: Client, settings: Any) -> None:
    settings.ARENA_DEMO = True
    resolve_questions(0, 12, best=0.8, days=3)
    copies = elements(get_page(client, "/findings/"), f"{FINDING} a[data-copy]")
    assert len(copies) > 1
    assert all(str(copy.attributes["data-copy"]).endswith(" (demo with invented data)") for copy in copies)


def test_finding_shares_its_own_picture(client: Client) -> None:
    resolve_questions(0, 12, best=0.8, days=3)
    item = element(get_page(client, "/findings/"), "#worst")
    words, address = visible_text(item, "figcaption"), element(item, "a[data-copy]").attributes["href"] or ""
    page = get_page(client, address.partition("#")[0])
    assert visible_text(page, "#worst figcaption") == words
    assert " ".join((element(page, "meta[name=description]").attributes["content"] or "").split()) == words
    shared = element(page, 'meta[property="og:image"]').attributes["content"] or ""
    assert "/findings/charts/worst.png" in shared
    picture = client.get(shared).content
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)
    assert client.get("/findings/?finding=nothing").status_code == 404


def test_page_without_enough_events_says_so_and_is_linked_from_every_page(client: Client) -> None:
    page = get_page(client, "/findings/")
    assert "0 events resolved so far; comparisons are made from 4 on." in visible_text(page)
    assert "/findings/" in links(page, "header nav a")
    assert "/findings/" in client.get("/sitemap-pages.xml").content.decode()
