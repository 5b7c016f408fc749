"""No violation that axe finds on any page, in both themes, wide and narrow."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tests.browser.visitor import Visitor
from tests.season.places import FOREIGN, LAYOUTS, NAMES, STATUS, Places
from tests.selection import chosen

pytestmark = [pytest.mark.slow, pytest.mark.browser]

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = "color-contrast"
PLACES = ["target-size", "scrollable-region-focusable", "link-in-text-block"]
"""The rules besides contrast that depend on width and theme: looked for again, narrow and dark."""
MARK_REPEATED_ROWS = """() => {
  const styled = ["class", "scope", "style", "type"];
  const looks = e => [
    e.tagName, ...e.getAttributeNames(), ...styled.map(name => e.getAttribute(name)),
    "(", ...[...e.children].map(looks), ")"
  ].join(" ");
  for (const body of document.querySelectorAll("tbody")) {
    const seen = new Set();
    for (const [place, row] of [...body.rows].entries()) {
      const look = `${place % 2} ${looks(row)}`;
      if (seen.has(look) && row !== body.lastElementChild) row.dataset.repeated = "";
      seen.add(look);
    }
  }
}"""
"""Marks each row, but for the last, that has an earlier row's elements, stripe, and attributes that style sheets name.

Its colours are those of the other, and contrast takes four fifths of the time of all rules.
"""
FIND = """async ({context, options}) => (await axe.run(context, options)).violations.map(
  ({id, nodes}) => ({id, nodes: nodes.slice(0, 4).map(
    ({target, failureSummary}) => ({target, failureSummary})
  )})
)"""
ELSEWHERE = {"trading of a version", "leaderboard of a day", "cohort just started", "forecasts without prices"}
"""Made of the very pieces of another page that is looked at."""


@pytest.mark.parametrize("name", chosen(LAYOUTS, [name for name in NAMES if name not in FOREIGN | ELSEWHERE]))
def test_no_accessibility_violation(name: str, visitors: Callable[..., Visitor], places: Places) -> None:
    reader = visitors(bypass_csp=True)  # what axe injects is not the page's
    if not reader.page.evaluate("typeof axe === 'object'"):
        reader.context.add_init_script(AXE_SCRIPT)
    reader.reset()
    reader.go(places[name], status=STATUS.get(name, 200))
    reader.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    reader.page.evaluate(MARK_REPEATED_ROWS)
    faults = violations(reader, {"runOnly": RULES, "rules": {CONTRAST: {"enabled": False}}}) + low_contrast(reader)
    reader.resize(320, "dark")
    reader.settle()
    faults += violations(reader, {"runOnly": {"type": "rule", "values": PLACES}}) + low_contrast(reader)
    assert not faults, "\n".join(faults)


def low_contrast(reader: Visitor) -> list[str]:
    """Texts that are hard to read, in rows that repeat no other's looks."""
    options = {"runOnly": {"type": "rule", "values": [CONTRAST]}}
    return violations(reader, options, {"exclude": [["[data-repeated]"]]})


def violations(reader: Visitor, options: dict[str, Any], context: Any = "html") -> list[str]:
    """Where each fault of the page that is open stands, and how to mend it; `context` is the part to look at."""
    options = {"resultTypes": ["violations"], **options}
    faults: list[dict[str, Any]] = reader.page.evaluate(FIND, {"context": context, "options": options})
    return [
        f"{reader.page.viewport_size} {fault['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1]}"
        for fault in faults
        for node in fault["nodes"]
    ]
