"""Feeds, sitemaps and robots.txt."""

from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from arena_site.pages.filters import page_url
from scoring.selectors.competition import competition_index
from tests.factories import WEEK, AgentFactory, DecisionFactory, MarketFactory, QuestionFactory, bet, resolve

pytestmark = pytest.mark.django_db

ATOM = "{http://www.w3.org/2005/Atom}"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def entries(client: Client, name: str) -> list[dict[str, str]]:
    answer = client.get(f"/feeds/{name}.atom")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/atom+xml")
    return [
        {
            "title": entry.findtext(f"{ATOM}title") or "",
            "link": entry.find(f"{ATOM}link").attrib["href"],  # type: ignore[union-attr]
            "summary": entry.findtext(f"{ATOM}summary") or "",
            "updated": entry.findtext(f"{ATOM}updated") or "",
        }
        for entry in ElementTree.fromstring(answer.content).findall(f"{ATOM}entry")
    ]


def addresses(client: Client, path: str) -> list[str]:
    answer = client.get(path)
    assert answer.status_code == 200
    posts = [element.text or "" for element in ElementTree.fromstring(answer.content).iter(f"{SITEMAP}loc")]
    assert all(address.startswith("http://testserver/") for address in posts)
    return [address.removeprefix("http://testserver") for address in posts]


def test_a_fresh_arena_has_empty_feeds(client: Client) -> None:
    assert entries(client, "decisions") == entries(client, "resolutions") == []


def test_feed_of_decisions_has_trades_and_reasoning(client: Client) -> None:
    agent = AgentFactory()
    first = bet(agent, MarketFactory(question="Will it rain in Orsa?"), amount="500.00").decision
    DecisionFactory(agent=agent, week=2, missed=True)
    third = DecisionFactory(agent=agent, week=3, fallback=True, reasoning="")
    posts = entries(client, "decisions")
    assert [post["link"] for post in posts] == [f"http://testserver/decisions/{row.pk}/" for row in (third, first)]
    assert posts[0]["title"] == f"{agent.family.display_name}: HOLD by fallback, cohort 1, week 3"
    assert posts[1]["summary"] == (
        "BUY 1,250.00 YES at 40.0 % for $500.00: Will it rain in Orsa?<br>Nothing looks mispriced."
    )
    assert posts[1]["updated"] == "2026-03-08T00:05:00+00:00"


def test_feed_of_resolutions_has_winners_and_results(client: Client) -> None:
    agent = AgentFactory()
    resolved, cancelled, unknown = MarketFactory(question="Will it rain?"), MarketFactory(), MarketFactory()
    bet(agent, resolved, amount="500.00")
    bet(agent, cancelled, amount="100.00")
    resolve(unknown, "YES", at=WEEK + timedelta(days=3))
    resolve(resolved, "YES", at=WEEK + timedelta(days=1))
    resolve(cancelled, None, at=WEEK + timedelta(days=2))
    posts = entries(client, "resolutions")
    assert [post["title"] for post in posts] == [f"Cancelled: {cancelled.question}", "Resolved YES: Will it rain?"]
    assert posts[1]["summary"] == f"{agent.family.display_name}, cohort 1, YES: +$750.00"
    assert posts[1]["link"] == f"http://testserver/markets/{resolved.pk}/"


def test_markup_in_a_question_is_text_in_a_feed(client: Client) -> None:
    text = "Is 1 < 2 & \"3\" > '2'?\n\x07"
    market = MarketFactory(question=text, category='"R&D\'s"')
    trade = bet(AgentFactory(), market, amount="500.00")
    resolve(market, "YES", at=WEEK + timedelta(days=1))
    (entry,) = entries(client, "resolutions")
    (decided,) = entries(client, "decisions")
    assert entry["title"] == "Resolved YES: Is 1 < 2 & \"3\" > '2'?"
    assert "Is 1 &lt; 2 &amp; &quot;3&quot; &gt; &#x27;2&#x27;?<br>" in decided["summary"]
    assert decided["link"] == f"http://testserver/decisions/{trade.decision_id}/"
    feed = ElementTree.fromstring(client.get("/feeds/resolutions.atom").content)
    assert [post.attrib["term"] for post in feed.iter(f"{ATOM}category")] == ['"R&D\'s"']


def test_decision_without_trades_and_reasoning_has_an_empty_summary(client: Client) -> None:
    DecisionFactory(reasoning="")
    (posts,) = entries(client, "decisions")
    assert posts["summary"] == ""


def test_unchanged_feed_gets_a_304(client: Client) -> None:
    DecisionFactory()
    tag = client.get("/feeds/decisions.atom")["ETag"]
    assert client.get("/feeds/decisions.atom", headers={"If-None-Match": tag}).status_code == 304


def test_feeds_need_the_same_queries_for_any_number_of_entries(client: Client) -> None:
    def queries(name: str) -> int:
        competition_index()  # who plays is read once for a change, not for a feed
        with CaptureQueriesContext(connection) as captured:
            entries(client, name)
        return len(captured)

    def more() -> None:
        trade = bet(AgentFactory(), MarketFactory())
        resolve(trade.market, "YES", at=WEEK + timedelta(days=1))

    more()
    few = queries("decisions"), queries("resolutions")
    more()
    more()
    assert (queries("decisions"), queries("resolutions")) == few
    assert max(few) <= 4  # one looks for seals


def test_the_sitemap_lists_every_page_once_and_each_is_there(client: Client) -> None:
    agent = AgentFactory()
    trade = bet(agent, MarketFactory())
    MarketFactory()  # nobody's: no page that a stranger would look for
    question = QuestionFactory(markets=[trade.market])
    parts = addresses(client, "/sitemap.xml")
    pages = [page for part in parts for page in addresses(client, part)]
    assert len(pages) == len(set(pages))
    assert {
        "/", "/models/", page_url("family", agent.family.slug), "/cohorts/1/", page_url("agent", 1, agent.family.slug),
        f"/decisions/{trade.decision_id}/", f"/markets/{trade.market_id}/", f"/questions/{question.pk}/",
        "/methodology/v1/", "/about/",
    } <= set(pages)  # fmt: skip
    assert sum(page.startswith("/markets/") for page in pages) == 2  # the list, and the one
    assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)


def test_robots_file_names_the_sitemap(client: Client) -> None:
    answer = client.get("/robots.txt")
    assert answer["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    assert "Sitemap: http://testserver/sitemap.xml" in lines
    assert "Disallow: /admin/" in lines
