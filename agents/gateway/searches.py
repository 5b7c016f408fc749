"""The gateway's search tool as a part of a request; `arena_verifier.searches` reads what an answer tells of it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from arena_verifier.searches import SEARCH_TOOL

if TYPE_CHECKING:
    from markets.selection_rule import SearchTool


def search_parameters(tool: "SearchTool", own_hosts: Iterable[str]) -> dict[str, Any]:
    """The part of a request that offers the tool, with the hosts that it leaves out."""
    parameters = {
        "engine": tool.engine,
        "max_results": tool.max_results,
        "max_uses": tool.max_uses,
        "max_total_results": tool.max_uses * tool.max_results,
        "excluded_domains": list(dict.fromkeys([*tool.excluded_domains, *own_hosts])),
    }
    return {"tools": [{"type": SEARCH_TOOL, "parameters": parameters}], "max_tool_calls": tool.max_uses}
