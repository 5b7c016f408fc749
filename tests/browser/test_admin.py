"""The admin in a browser, under the content policy of every page."""

from collections.abc import Callable
from urllib.parse import urljoin

import pytest

from tests.browser.visitor import Visitor
from tests.season.full_season import ADMIN
from tests.season.running_site import Site

pytestmark = [pytest.mark.slow, pytest.mark.browser]

CUT_COLUMNS = """() => {
  const results = document.querySelector("#changelist .results");
  const edge = results ? results.getBoundingClientRect().right + 1 : 0;
  const headings = results ? [...results.querySelectorAll("thead th")] : [];
  return headings.filter(each => each.getBoundingClientRect().right > edge).map(each => each.innerText.trim());
}"""
"""The headings of the columns that reach beyond their list."""


@pytest.mark.thorough
def test_lists_cut_no_column_and_obey_the_policy_as_details_do(site: Site, sign_in: Callable[..., Visitor]) -> None:
    operator = sign_in(site, ADMIN)
    page = operator.page
    index = urljoin(site.url, "/admin/")
    links = page.eval_on_selector_all("#content th a[href], #content caption a[href]", "all => all.map(a => a.href)")
    lists = sorted({link for link in links if link.startswith(index) and link.count("/") >= 6})
    assert len(lists) > 20, lists
    opened, faults, cut = 0, {}, {}
    operator.resize(1280, "light")
    for address in lists:
        path = address.removeprefix(site.url)
        operator.go(path)
        if operator.faults:
            faults[path] = list(operator.faults)
            operator.faults.clear()
        if columns := page.evaluate(CUT_COLUMNS):
            cut[path] = columns
        first = page.locator("#result_list tbody th a, #result_list tbody td a[href*='/change/']")
        if first.count():
            detail = urljoin(address, str(first.first.get_attribute("href")))
            operator.go(detail.removeprefix(site.url))
            assert page.locator("#content h1, #content h2").count() > 0
            opened += 1
            if operator.faults:
                faults[detail.removeprefix(site.url)] = list(operator.faults)
                operator.faults.clear()
    assert faults == {}
    assert cut == {}
    assert opened > 15
