"""The findings in sentences, and their page."""

from typing import Any

import pytest
from django.test import Client

from arena_site.pages.findings import statement
from scoring.findings import Finding
from tests.markup import get_page, links, visible_text


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
            " Brier score is 0.020 higher (95 % interval 0.010 to 0.030 on 1,270 resolved questions).",
            "ensemble", (-0.02, -0.03, -0.01), {},
        ),
        (
            "GPT-5.2 does not forecast significantly better or worse than Grok 4.1 when shown the market’s prices: the"
            " difference in Brier score is 0.020 (95 % interval −0.010 to 0.050 on 1,270 resolved questions, corrected"
                " p = 0.300); about 42 more"
            " resolved questions are needed to find a true difference of 0.01 with a probability of 80 %.",
            "runner-up", (0.02, -0.01, 0.05), {"p": 0.3, "questions_more": 42},
        ),
        (
            "GPT-5.2 forecasts better than Grok 4.1 when shown the market’s prices: its Brier score is 0.020 lower (95"
            " % interval 0.010 to 0.030 on 1,270 resolved questions, corrected p < 0.001).",
            "worst", (0.02, 0.01, 0.03), {"p": 0.0},
        ),
        (
            "Seeing the market’s prices makes no significant difference to the models’ forecasts: their mean Brier"
            " score differs by 0.020 (95 % interval −0.010 to 0.050 on 1,270 resolved questions). With this many"
            " questions we would probably have noticed a gap of 0.01; we did not.",
            "prices", (0.02, -0.01, 0.05), {"questions_more": 0},
        ),
        (
            "6 of 7 models stake significantly less than Kelly’s rule would at their own forecasts and prices, most of"
            " all GPT-5.2: a bet takes 5.0 % of its cash on average, Kelly’s rule 20.0 % (difference 15.0 percentage"
            " points, 95 % interval 10.0 to 20.0 on 1,270 bets).",
            "stakes", (-0.15, -0.2, -0.1), {"details": {"alike": 6, "models": 7, "stake": 0.05, "kelly": 0.2}},
        ),
        (
            "No model is shown to earn money: the mean return of GPT-5.2, the highest, is +2.00 %, and its interval"
            " includes 0 (95 % interval −1.00 % to +5.00 % over 1 cohort); only more cohorts can tell.",
            "profit", (2.0, -1.0, 5.0), {"number": 1},
        ),
        (
            "When GPT-5.2 states 80 % to 90 %, it happens 75.0 % of the time (95 % interval 70.0 % to 80.0 %, 1,270"
            " probabilities, mean forecast 85.0 %): it is overconfident there.",
            "calibration", (-0.1, -0.15, -0.05),
            {"details": {"from": 0.8, "to": 0.9, "outcome": 0.75, "low": 0.7, "high": 0.8, "forecast": 0.85}},
        ),
    ],
)  # fmt: skip
def test_sentences(text: str, topic: str, bounds: tuple[float, float, float], changes: dict[str, Any]) -> None:
    assert sentence(topic, *bounds, **changes) == text


@pytest.mark.django_db
def test_page_without_enough_events_says_so_and_is_linked_from_every_page(client: Client) -> None:
    page = get_page(client, "/findings/")
    assert "0 events resolved so far; comparisons are made from 4 on." in visible_text(page)
    assert "/findings/" in links(page, "footer a")
    assert "/findings/" in client.get("/sitemap-pages.xml").content.decode()
