"""Searches: how many the gateway made for an answer, what they showed, what they cost and why it counts nowhere."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urlsplit

from arena_verifier.answer_texts import member, parse, storable
from arena_verifier.rows import Row, Tables, Violations

SEARCH_TOOL = "openrouter:web_search"
MAX_SEARCHES, MAX_RESULTS = 1_000, 750
"""Of one answer. A gateway makes at most 30 searches of 25 results each; a higher number is taken for an error."""
RESULT_LIMITS = {"url": 2_000, "title": 500, "content": 10_000}
"""Characters of a result that are stored. The gateway cuts contents to some 4,000."""
MAX_REASON = 200
MAX_COST = Decimal(10_000)
COST_UNIT = Decimal("0.000000000001")
UNSEEN = "searched, results unknown"
"""Why an answer counts on no board for which searches were made and none of their results are known."""


def check_searches(tables: Tables, violations: Violations) -> None:
    """What is stored of a call's searches follows from its parameters and its raw answer."""
    for call in tables.rows("calls"):
        violations.differ("calls", call, read_searches(call["parameters"], call["raw_response"]))


def read_searches(parameters: Any, raw_response: str) -> Row:
    """The searches behind an answer as columns of `calls`; null without a tool, or a body that can be read.

    Where the gateway states no number, they are the fewest that can have shown so many results.
    """
    tools = member(parameters, "tools")
    tool = next((tool for tool in tools or () if member(tool, "type") == SEARCH_TOOL), None)
    body = parse(raw_response, parse_float=Decimal) if tool else None
    if not isinstance(body, dict):
        return {"searches": None, "results": None, "search_cost_usd": None, "excluded": ""}
    results = shown_results(member(body, "choices", 0, "message", "annotations"))
    limit, searches = member(tool, "parameters", "max_results"), None
    for name in ("server_tool_use", "server_tool_use_details"):
        number = member(body, "usage", name, "web_search_requests")
        searches = number if type(number) is int and 0 <= number <= MAX_SEARCHES else searches
    if searches is None:
        searches = -(-len(results) // (limit if type(limit) is int and limit > 0 else 1))
    reason = excluded_reason(results, member(tool, "parameters", "excluded_domains") or [])
    return {
        "searches": searches, "results": results,
        "search_cost_usd": search_cost(body.get("usage")) if searches else Decimal(0),
        "excluded": reason or (UNSEEN if searches and not results else ""),
    }  # fmt: skip


def search_cost(usage: Any) -> Decimal | None:
    """The stated cost without that of the prompt and the completion; None where these are not stated."""
    names = ("upstream_inference_prompt_cost", "upstream_inference_completions_cost")
    cost = stated_cost(member(usage, "cost"))
    prompt, completion = (stated_cost(member(usage, "cost_details", name)) for name in names)
    if cost is None or prompt is None or completion is None or member(usage, "is_byok") is True:
        return None
    return max(cost - prompt - completion, Decimal(0)).quantize(COST_UNIT)


def stated_cost(value: Any) -> Decimal | None:
    """A cost in US dollars, as a number or as text."""
    number = None
    with suppress(ArithmeticError, ValueError, TypeError):
        number = None if isinstance(value, bool | float) else Decimal(value)
    return number if number is not None and number.is_finite() and 0 <= number <= MAX_COST else None


def shown_results(annotations: Any) -> list[Row]:
    """The results that the model saw, each once and in their order, with addresses of the web alone."""
    results: dict[str, Row] = {}
    for annotation in annotations if isinstance(annotations, list) else ():
        citation = member(annotation, "url_citation")
        result = {name: storable(member(citation, name)).strip()[:limit] for name, limit in RESULT_LIMITS.items()}
        if not re.match("https?://", result["url"], re.IGNORECASE) or not host_of(result["url"]):
            result["url"] = ""
        if any(result.values()) and len(results) < MAX_RESULTS:
            results.setdefault(json.dumps(result), result)
    return list(results.values())


def excluded_reason(results: Iterable[Row], hosts: Any) -> str:
    """The first result of an excluded host, of a subdomain of one, or of a copy of its page."""
    excluded = tuple("." + str(host).lower().strip(".") for host in hosts if host)
    for result in results:
        # The copy of a page in an archive has the page's address in its own.
        for host in map(host_of, unquote(unquote(result["url"])).split("://")[1:]):
            if host and f".{host}".endswith(excluded):
                return f"a search showed a page of {host}, which is excluded"[:MAX_REASON]
    return ""


def host_of(address: str) -> str:
    """The host of an address in small letters; empty for one that can not be read."""
    with suppress(ValueError):
        return (urlsplit(f"//{address.split('://', 1)[-1]}").hostname or "").rstrip(".")
    return ""
