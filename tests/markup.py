"""HTML pages, parsed as a browser parses them."""

import json
import re
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from selectolax.lexbor import LexborHTMLParser, LexborNode

JOINT = "\x1f"
"""Stands where a figure's text and the text beside it make one."""


def get_page(client: Client, address: str, status: int = 200) -> LexborHTMLParser:
    """The page at an address of the site, or at the one to which it leads for good, such as a family's by its slug."""
    response = client.get(address)
    if response.status_code == 301:
        response = client.get(response["Location"])
    assert response.status_code == status, f"{address}: {response.status_code}"
    return LexborHTMLParser(response.content)


def element(page: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    """The first element that a CSS selector matches."""
    node = page.css_first(selector)
    assert node is not None, f"no element matches {selector}"
    return node


def elements(page: LexborHTMLParser | LexborNode, selector: str) -> list[LexborNode]:
    """The elements that a CSS selector matches, in the order of the document, each once."""
    return list({node.mem_id: node for node in page.css(selector)}.values())


def visible_text(page: LexborHTMLParser | LexborNode, selector: str = "") -> str:
    """The text that a reader sees of the page's body, of a node or of the element selected in it, in single spaces."""
    node = element(page, selector) if selector else page.body if isinstance(page, LexborHTMLParser) else page
    assert node is not None
    copy = node.clone()
    for script in copy.css("script"):
        script.decompose()
    for figure in copy.css("data"):  # stands in the text around it
        before, after = (JOINT if node and node.tag == "-text" else "" for node in (figure.prev, figure.next))
        figure.replace_with(f"{before}{figure.text()}{after}")
    return " ".join(re.sub(f" {JOINT}|{JOINT} ", "", copy.text(separator=" ")).split())


def section(page: LexborHTMLParser, heading: str) -> LexborNode:
    """The section under the heading with this id."""
    return element(page, f'section[aria-labelledby="{heading}"]')


def links(page: LexborHTMLParser | LexborNode, selector: str = "a") -> list[str]:
    """The targets of the links that a CSS selector matches."""
    return [node.attributes["href"] or "" for node in elements(page, selector) if "href" in node.attributes]


def table_rows(page: LexborHTMLParser | LexborNode, *, small_print: bool = True) -> list[list[str]]:
    """The texts of the cells of each row of the tables in it, headings included."""
    rows = []
    for row in elements(page, "tr"):
        cells = [cell.clone() for cell in elements(row, "th, td")]
        for small in [] if small_print else [small for cell in cells for small in cell.css("small")]:
            small.decompose()
        rows.append([visible_text(cell) for cell in cells])
    return rows


def table_row(page: LexborHTMLParser | LexborNode, words: str) -> str:
    """The text of the one row of a table's body that contains these words."""
    rows = [visible_text(row) for row in elements(page, "tbody tr")]
    (row_text,) = [row for row in rows if words in row]
    return row_text


def count_queries(client: Client, address: str) -> int:
    """The number of queries of a page that has been read before: what changes once a week is cached then."""
    get_page(client, address)
    with CaptureQueriesContext(connection) as captured:
        get_page(client, address)
    return len(captured)


def chart_data(page: LexborHTMLParser, key: str) -> dict[str, Any]:
    """The data that a chart's script reads."""
    data: dict[str, Any] = json.loads(element(page, f'script[id="{key}-data"]').text())
    return data
