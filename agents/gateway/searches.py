"""The gateway's search tool: its part of a request, and what an answer tells of the searches that were made for it.

Everything is read from the request's parameters and the stored answer, so that anyone can read it again.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from agents.gateway.completions import parse_cost, parse_count, parse_object
from agents.prices import COST_UNIT
from foundation.redaction import redact

if TYPE_CHECKING:
    from markets.selection_rule import SearchTool

TOOL = "openrouter:web_search"
MAX_SEARCHES, MAX_RESULTS = 1_000, 750
"""Of one answer. A gateway makes at most 30 searches of 25 results each; a higher number is taken for an error."""
MAX_URL, MAX_TITLE, MAX_CONTENT = 2_000, 500, 10_000
"""Characters of a result that are stored. The gateway cuts contents to some 4,000."""
MAX_REASON = 200

Result = dict[str, str]
"""`url` (empty unless it is a web address), `title` and `content`."""


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches behind one answer, as the columns of `ModelCall` hold them; all null where there was no tool.

    searches : stated by the gateway; else the fewest that can have shown so many results
    search_cost_usd : null where the gateway does not state the cost of the tokens apart
    excluded : why the answer counts on no board, or empty
    """

    searches: int | None = None
    results: list[Result] | None = None
    search_cost_usd: Decimal | None = None
    excluded: str = ""


def search_parameters(tool: "SearchTool", own_hosts: Iterable[str]) -> dict[str, Any]:
    """The part of a request that offers the tool, with the hosts that it leaves out."""
    parameters = {
        "engine": tool.engine,
        "max_results": tool.max_results,
        "max_uses": tool.max_uses,
        "max_total_results": tool.max_uses * tool.max_results,
        "excluded_domains": list(dict.fromkeys([*tool.excluded_domains, *own_hosts])),
    }
    return {"tools": [{"type": TOOL, "parameters": parameters}], "max_tool_calls": tool.max_uses}


def read_searches(parameters: Any, raw_response: str) -> Searches:
    """The searches behind an answer; all null without a tool, or without a body that can be read."""
    tool = _tool_parameters(parameters)
    body = _parse_body(raw_response) if tool is not None else None
    if tool is None or body is None:
        return Searches()
    results = _parse_results(body)
    usage = parse_object(body.get("usage"))
    searches = _stated_searches(usage)
    if searches is None:
        searches = -(-len(results) // max(1, parse_count(tool.get("max_results")) or 1))
    cost = _search_cost(usage) if searches else Decimal(0)
    hosts = tool.get("excluded_domains")
    return Searches(
        searches=searches,
        results=results,
        search_cost_usd=None if cost is None else cost.quantize(COST_UNIT),
        excluded=_excluded_reason(results, hosts if isinstance(hosts, list) else []),
    )


def _tool_parameters(parameters: Any) -> dict[str, Any] | None:
    tools = parse_object(parameters).get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and tool.get("type") == TOOL:
            return parse_object(tool.get("parameters"))
    return None


def _parse_body(raw_response: str) -> dict[str, Any] | None:
    try:
        body = json.loads(raw_response, parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _stated_searches(usage: dict[str, Any]) -> int | None:
    for name in ("server_tool_use_details", "server_tool_use"):
        number = parse_count(parse_object(usage.get(name)).get("web_search_requests"))
        if number is not None and number <= MAX_SEARCHES:
            return number
    return None


def _search_cost(usage: dict[str, Any]) -> Decimal | None:
    """The part of the stated cost that is not of tokens; None where that of tokens is not stated."""
    details = parse_object(usage.get("cost_details"))
    cost, upstream = parse_cost(usage.get("cost")), parse_cost(details.get("upstream_inference_cost"))
    if cost is None or upstream is None or usage.get("is_byok") is True:
        return None
    return max(cost - upstream, Decimal(0))


def _parse_results(body: dict[str, Any]) -> list[Result]:
    """The results that the model saw, each once, in their order."""
    choices = body.get("choices")
    choice = parse_object(choices[0]) if isinstance(choices, list) and choices else {}
    annotations = parse_object(choice.get("message")).get("annotations")
    results: dict[tuple[str, ...], Result] = {}
    for annotation in annotations if isinstance(annotations, list) else ():
        citation = parse_object(annotation).get("url_citation")
        if not isinstance(citation, dict):
            continue
        result = {
            "url": _web_address(_text(citation.get("url"), MAX_URL)),
            "title": _text(citation.get("title"), MAX_TITLE),
            "content": _text(citation.get("content"), MAX_CONTENT),
        }
        if any(result.values()) and len(results) < MAX_RESULTS:
            results.setdefault(tuple(result.values()), result)
    return list(results.values())


def _text(raw: Any, limit: int) -> str:
    return redact(raw).strip()[:limit] if isinstance(raw, str) else ""


def _web_address(url: str) -> str:
    return url if url.lower().startswith(("http://", "https://")) and _host(url) else ""


def _host(url: str) -> str:
    """The host of an address in small letters; empty for one that can not be read."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _excluded_reason(results: Iterable[Result], hosts: Collection[Any]) -> str:
    """The first result of an excluded host or of a subdomain of one; empty if there is none."""
    excluded = {str(host).lower().strip(".") for host in hosts}
    for result in results:
        # The copy of a page in an archive has the page's address in its own.
        for part in unquote(unquote(result["url"])).split("://")[1:]:
            host = _host(f"https://{part}")
            if any(name in excluded for name in _names(host)):
                return f"a search showed a page of {host}, which is excluded"[:MAX_REASON]
    return ""


def _names(host: str) -> Iterator[str]:
    """A host and the domains that it belongs to."""
    while host:
        yield host
        host = host.partition(".")[2]
