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
PLACES = ["color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block"]
"""The rules that depend on width and theme: looked for again, narrow and dark."""
MARK_KNOWN = """theme => {
  const names = ["class", "fill", "scope", "style", "type"];
  const known = JSON.parse(localStorage.getItem("known") ?? "{}");
  let count = Object.keys(known).length;
  const looks = e => [
    e.tagName, ...e.getAttributeNames(), ...names.map(name => e.getAttribute(name)), e.matches("tr:nth-child(even)"),
    [...e.childNodes].some(node => node.nodeType === 3 && node.data.trim()),
  ].join(" ");
  const visit = (e, around) => {
    const place = `${around} ${looks(e)}`;
    e.toggleAttribute("data-known", place in known);
    known[place] ??= ++count;
    [...e.children].forEach(child => visit(child, known[place]));
  };
  visit(document.body, theme);
  localStorage.setItem("known", JSON.stringify(known));
  axe.configure({rules: [{id: "color-contrast", selector: ":not([data-known])"}]});
}"""
"""Leaves out of the rule on contrast each element that looks like one that was seen in the theme before: of the same
kind, stripe, and attributes that style sheets name, within elements that look the same.

Its colours are those of the other, and contrast takes four fifths of the time of all rules.
"""
FIND = """async options => (await axe.run(options)).violations.map(
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
    faults = violations(reader, "light", RULES)
    reader.resize(320, "dark")
    reader.settle()
    faults += violations(reader, "dark", {"type": "rule", "values": PLACES})
    assert not faults, "\n".join(faults)


def violations(reader: Visitor, theme: str, rules: Any) -> list[str]:
    """Where each fault of the page that is open stands, and how to mend it."""
    reader.page.evaluate(MARK_KNOWN, theme)
    faults: list[dict[str, Any]] = reader.page.evaluate(FIND, {"resultTypes": ["violations"], "runOnly": rules})
    return [
        f"{reader.page.viewport_size} {fault['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1]}"
        for fault in faults
        for node in fault["nodes"]
    ]
