"""No violation that axe finds on any page, in both themes, wide and narrow."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tests.browser.places import FOREIGN, NAMES, STATUS, Places
from tests.browser.visitor import Visitor

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS = {
    "type": "rule",
    "values": ["color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block"],
}
"""What depends on width and theme: looked for again, narrow and dark."""
FIND = """async options => (await axe.run(options)).violations.map(
  ({id, nodes}) => ({id, nodes: nodes.slice(0, 4).map(
    ({target, failureSummary}) => ({target, failureSummary})
  )})
)"""
ELSEWHERE = {"trading of a version", "leaderboard of a day", "cohort just started", "forecasts without prices"}
"""Made of the very pieces of another page that is looked at."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in FOREIGN | ELSEWHERE])
def test_no_accessibility_violation(name: str, visitors: Callable[..., Visitor], places: Places) -> None:
    reader = visitors(bypass_csp=True)  # what axe injects is not the page's
    if not reader.page.evaluate("typeof axe === 'object'"):
        reader.context.add_init_script(AXE_SCRIPT)
    reader.reset()
    reader.go(places[name], status=STATUS.get(name, 200))
    reader.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = violations(reader, {"runOnly": RULES})
    reader.resize(320, "dark")
    reader.settle()
    found += violations(reader, {"runOnly": LOOKS})
    assert not found, "\n".join(found)


def violations(reader: Visitor, options: dict[str, Any]) -> list[str]:
    """Where each fault of the page that is open stands, and how to mend it."""
    faults: list[dict[str, Any]] = reader.page.evaluate(FIND, {"resultTypes": ["violations"], **options})
    return [
        f"{reader.page.viewport_size} {fault['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1]}"
        for fault in faults
        for node in fault["nodes"]
    ]
