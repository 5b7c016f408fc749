"""The searches of an answer: their number, their cost, the pages that they showed, and why an answer counts nowhere."""

import json
from decimal import Decimal
from typing import Any

import pytest

from arena_verifier.searches import UNSEEN, read_searches

HOSTS = ["polymarket.com", "kalshi.com", "arena.example.org", "forecasts.example.net"]
TOOL = {"type": "openrouter:web_search", "parameters": {"max_results": 5, "excluded_domains": HOSTS}}


def read(annotations: Any, usage: Any) -> dict[str, Any]:
    body = {"choices": [{"message": {"content": "{}", "annotations": annotations}}], "usage": usage}
    return read_searches({"tools": [TOOL]}, json.dumps(body))


def cited(url: Any, title: Any = "A page", content: Any = "Clouds.") -> dict[str, Any]:
    return {"type": "url_citation", "url_citation": {"url": url, "title": title, "content": content}}


def searched(number: Any, **usage: Any) -> dict[str, Any]:
    return {"cost": 0.009, "server_tool_use_details": {"web_search_requests": number}, **usage}


PAGES = [cited(f"https://example.com/{number}") for number in range(6)]
COSTS = {"upstream_inference_prompt_cost": 0.0015, "upstream_inference_completions_cost": 0.0005}
OWN_COSTS = {"upstream_inference_prompt_cost": 0.0032696, "upstream_inference_completions_cost": 4.8e-05}
COUNTS: dict[str, tuple[list[Any], Any, Any]] = {
    # what an answer shows, its usage, and its searches with their cost
    "two": (PAGES, searched(2, cost_details=COSTS), (2, Decimal("0.007"))),
    "none": ([], searched(0, cost=0.002, cost_details=COSTS), (0, Decimal(0))),
    "the documented name": (PAGES, searched(None, server_tool_use={"web_search_requests": 1}), (1, None)),
    "nothing stated, nothing shown": ([], None, (0, Decimal(0))),
    "nothing stated, more shown than one search shows": (PAGES, None, (2, None)),
    "no count": (PAGES[:1], searched("many"), (1, None)),
    "a count beyond all limits": (PAGES[:1], searched(10**8), (1, None)),
    "the provider's own bill": (PAGES, searched(1, is_byok=True, cost_details=COSTS), (1, None)),
    "cost of tokens unknown": (PAGES, searched(1, cost_details={"upstream_inference_cost": 0.002}), (1, None)),
    "by the model's own maker": (
        [],
        searched(1, cost=0.0133176, cost_details=OWN_COSTS | {"upstream_inference_cost": 0.0133176}),
        (1, Decimal("0.01")),
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_number_and_cost_of_searches(name: str) -> None:
    annotations, usage, expected = COUNTS[name]
    row = read(annotations, usage)
    assert (row["searches"], row["search_cost_usd"]) == expected


@pytest.mark.parametrize("annotations", [None, {}, "text", [[]], 7])
def test_annotations_of_another_shape_are_no_results(annotations: Any) -> None:
    row = read(annotations, None)
    assert (row["searches"], row["results"], row["excluded"]) == (0, [], "")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://polymarket.com/event/rain", "polymarket.com"),
        ("https://Docs.Polymarket.COM./x", "docs.polymarket.com"),
        ("https://user@www.kalshi.com:443/", "www.kalshi.com"),
        ("http://www.arena.example.org/leaderboard/", "www.arena.example.org"),
        ("https://forecasts.example.net/", "forecasts.example.net"),
        ("https://web.archive.org/web/2026/https%3A%2F%2Fpolymarket.com/event", "polymarket.com"),
        ("https://notpolymarket.com/", ""),
        ("https://polymarket.com.example/", ""),
        ("https://example.com/polymarket.com", ""),
    ],
)
def test_answer_that_was_shown_an_excluded_host_is_marked(url: str, host: str) -> None:
    row = read([*PAGES[:2], cited(url)], searched(1))
    assert row["excluded"] == (f"a search showed a page of {host}, which is excluded" if host else "")


def test_searches_of_which_no_result_is_known_are_marked() -> None:
    assert read([], searched(1))["excluded"] == UNSEEN == "searched, results unknown"


def test_without_the_tool_nothing_is_counted() -> None:
    body = json.dumps({"choices": [{"message": {"annotations": PAGES}}], "usage": searched(2)})
    assert read_searches({}, body) == {"searches": None, "results": None, "search_cost_usd": None, "excluded": ""}
