"""The admin in a browser, under the content policy of every page."""

from collections.abc import Callable
from urllib.parse import urljoin

from tests.browser.visitor import Visitor
from tests.season.full_season import ADMIN
from tests.season.running_site import Site


def test_every_list_and_one_detail_of_each_obey_the_policy(site: Site, sign_in: Callable[..., Visitor]) -> None:
    operator = sign_in(site, ADMIN)
    page = operator.page
    index = urljoin(site.url, "/admin/")
    links = page.eval_on_selector_all("#content th a[href], #content caption a[href]", "all => all.map(a => a.href)")
    lists = sorted({link for link in links if link.startswith(index) and link.count("/") >= 6})
    assert len(lists) > 20, lists
    opened, faults = 0, {}
    for address in lists:
        path = address.removeprefix(site.url)
        operator.go(path)
        if operator.faults:
            faults[path] = list(operator.faults)
            operator.faults.clear()
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
    assert opened > 15
