"""The gateway's search tool: how often a model searches and what it is shown, in the form of captured answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from venue_sandbox.billing import refused
from venue_sandbox.prompt import block, table

TOOL = "openrouter:web_search"
PRICES = {"exa": Decimal("0.007"), "parallel": Decimal("0.005")}
"""US dollars for a search, by its engine."""
MAX_TOOL_CALLS = 30
CHARACTERS_PER_TOKEN = 4
HOSTS = ("news.example.org", "weather.example.com", "archive.example.net", "blog.example.org")
EXCLUDED_PAGE = ("https://polymarket.com/event/example", "A market about it")


@dataclass(frozen=True, slots=True)
class SearchTool:
    """The tool as a request offers it."""

    engine: str
    max_uses: int
    max_results: int
    excluded_domains: tuple[str, ...]

    @property
    def highest_price(self) -> Decimal:
        return self.max_uses * PRICES[self.engine]


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches for one answer and what they showed, a list of `url_citation` annotations."""

    number: int = 0
    annotations: tuple[dict[str, Any], ...] = ()
    cost: Decimal = Decimal(0)

    def prompt_tokens(self, single_prompt: int) -> int:
        """The tokens of all prompts: each search asks the model anew, with what was shown."""
        characters = sum(len(annotation["url_citation"]["content"]) for annotation in self.annotations)
        return (self.number + 1) * single_prompt + characters // CHARACTERS_PER_TOKEN

    @property
    def usage(self) -> dict[str, int]:
        names = ("tool_calls_requested", "tool_calls_executed", "web_search_requests")
        return dict.fromkeys(names, self.number)


def offered_tool(body: dict[str, Any]) -> SearchTool | None:
    """The search tool of a request; None without one. Raises Refusal for one that can not be used."""
    tools = body.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list) or [tool.get("type") for tool in tools if isinstance(tool, dict)] != [TOOL]:
        raise refused(400, f"tools: expected one of the type {TOOL}")
    parameters = tools[0].get("parameters") or {}
    numbers = [parameters.get("max_uses", 5), parameters.get("max_results", 5), body.get("max_tool_calls", 30)]
    if any(type(number) is not int or not 1 <= number <= MAX_TOOL_CALLS for number in numbers):
        raise refused(400, f"max_uses, max_results and max_tool_calls: expected 1 to {MAX_TOOL_CALLS}")
    if parameters.get("engine", "exa") not in PRICES:
        raise refused(400, f"engine: expected one of {', '.join(PRICES)}")
    uses, results, calls = numbers
    excluded = tuple(parameters.get("excluded_domains") or ())
    return SearchTool(parameters.get("engine", "exa"), min(uses, calls), results, excluded)


def search(tool: SearchTool, user: str, rng: Random, *, fault: str) -> Searches:
    """The searches of a model: none to all of its uses, each with some results about one of the questions.

    With the fault `endless` it searches as often as it may, with `excluded` it is shown an excluded host.
    """
    topics = list(_topics(user))
    number = tool.max_uses if fault == "endless" else rng.randint(0, tool.max_uses)
    pages = []
    for topic in (rng.choice(topics) for _ in range(number)):
        for place in range(rng.randint(1, tool.max_results)):
            host = rng.choice(HOSTS)
            title = "" if rng.random() < 0.1 else f"What is known: {topic}"
            pages.append((f"https://{host}/{rng.randrange(10**6)}/{place}", title))
    if fault == "excluded":
        number, pages = max(number, 1), [*pages, EXCLUDED_PAGE]
    results = [page for page in pages if fault == "excluded" or page[0].split("/")[2] not in tool.excluded_domains]
    return Searches(number, tuple(_annotation(*page) for page in results), number * PRICES[tool.engine])


def _topics(user: str) -> Iterator[str]:
    """The questions of a message; its first line where it has none."""
    lines = user.split("\n")
    try:
        rows, _ = block(lines, "QUESTIONS")
        yield from [str(row["question"]) for row in table(rows)] or lines[:1]
    except (KeyError, ValueError):
        yield lines[0]


def _annotation(url: str, title: str) -> dict[str, Any]:
    content = f"# {title or url}\n\n...\n\nReports differ.\n\n...\n\n- Published: recently"
    citation = {"url": url, "title": title, "start_index": 0, "end_index": 0, "content": content}
    return {"type": "url_citation", "url_citation": citation}
