"""Hostile text from outside on every page that shows it: none runs, links elsewhere or changes the direction."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client

from agents.models import AgentVersion, Family, Forecast, Maker, ModelCall
from agents.models.forecast import RefusedForecast
from scoring.services.scores import compute_scores
from tests.arena_site.addresses import REFUSED, pages
from tests.factories import (
    WEEK,
    AgentFactory,
    DecisionFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    PriceObservationFactory,
    QuestionFactory,
    UniverseFactory,
    ask,
    bet,
    chain_all,
    resolve,
)  # fmt: skip

pytestmark = pytest.mark.django_db

RTL = "\u202e"
"""Right-to-left override: what follows it is shown backwards until something ends it."""
LONG = "w" * 10_000
HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)></title></textarea></pre>"
    f"\r\n# SYSTEM\x08\n{{{{ secret }}}} {{% load x %}} ]]> --> </script> javascript:alert(4) {RTL}gnp.exe\u2066"
    "\ufffe\uffff"
)
ADDRESS = "javascript:alert(5)//x"
BOUNDED = HOSTILE[:250]
"""What fits a column of limited length."""
FORBIDDEN_TAGS = {"img", "iframe", "object", "embed", "base", "style", "textarea", "applet", "foreignobject"}
FORBIDDEN_TAGS |= {"animate", "set"}
WITHOUT_CLOSING = {"meta", "link", "br", "hr", "input"}
ELSEWHERE = ("https://polymarket.com/market/", "https://creativecommons.org/licenses/", "https://arxiv.org/abs/")
"""Other sites to which pages of the arena lead."""
LINK_ATTRIBUTES = {"href", "src", "action", "formaction", "xlink:href", "data", "srcset", "poster"}


class Reader(HTMLParser):
    """Collects what a browser would act upon, and text that turns direction outside of any frame."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.open: list[tuple[str, bool]] = []
        self.script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in FORBIDDEN_TAGS:
            self.faults.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.faults.append(f"{tag} {name}={value[:60]!r}")
            if name in LINK_ATTRIBUTES and not self.is_harmless_link(value):
                self.faults.append(f"{tag} leads to {value[:60]!r}")
            if name != "value" and RTL in value:
                self.faults.append(f"{tag} {name} turns direction")
        if tag == "script":
            self.script = attributes.get("type", "") if "src" not in attributes else None
            if "src" not in attributes and self.script not in ("application/json", "application/ld+json"):
                self.faults.append("a script in the page")
        if tag not in WITHOUT_CLOSING:
            self.open.append((tag, tag in ("bdi", "pre", "option") or "dir" in attributes))

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            closed, _ = self.open.pop()
            if closed == tag:
                return
        self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        inside = self.open[-1][0] if self.open else ""
        if inside == "script":
            json.loads(data)
        elif RTL in data and not any(framed for _, framed in self.open):
            self.faults.append(f"{inside} turns what follows: {data.strip()[:60]!r}")

    @staticmethod
    def is_harmless_link(value: str) -> bool:
        is_package = bool(re.fullmatch("[a-z-]+/", value))  # in the index of the kit, where its wheels were built
        is_ours = value.startswith(("/", "?", "#", "http://testserver/", *ELSEWHERE)) and not value.startswith("//")
        return is_package or is_ours


@pytest.fixture
def hostile() -> None:
    """An arena in which every text that comes from outside is hostile."""
    worst = HOSTILE if connection.vendor == "postgresql" else f"{HOSTILE}\0after"  # PostgreSQL takes no null character
    side = BOUNDED
    market = MarketFactory(
        question=worst, description=f"{worst}\n{LONG}", category=BOUNDED[:120], slug=ADDRESS, external_id=BOUNDED[:110],
        event_title=worst, oracle_status=BOUNDED[:40], prices={side: "0.5", "Bo": "0.25", "Cy": "0.2"},
    )  # fmt: skip
    long = MarketFactory(question=LONG, category=LONG[:120])
    agent = AgentFactory(family=Family.objects.get(slug="gpt-5.1"))
    agent.refresh_from_db()
    UniverseFactory()
    decision = DecisionFactory(agent=agent, action="BET", reasoning=f"{worst}\n\n{LONG}", error=worst)
    call = ModelCallFactory(
        decision=decision, raw_response=worst, content=worst, error=worst, returned_model=BOUNDED[:200],
        provider=BOUNDED[:200], finish_reason=BOUNDED[:60], retry_note=worst, portfolio_block=worst, awaiting=worst,
    )  # fmt: skip
    for payload in ({"market_id": worst, "side": worst, "amount": worst}, {"market_id": str(market.pk), "side": LONG}):
        InstructionFactory(call=call, payload=payload, reason=worst)
    InstructionFactory(call=call, kind="SELL", payload={"position_id": worst, "percentage": worst}, reason=worst)
    bet(agent, market, side)
    bet(agent, long)
    for market_row in (market, long):
        PriceObservationFactory(outcome=market_row.outcomes.earliest("pk"), reason=BOUNDED)
    question = QuestionFactory(markets=[market], rules=worst)
    for day in range(2):
        entry = ask(question, {"gpt-5.1": [0.5, 0.3, 0.2]}, day=WEEK.replace(day=8 + day))
    first = entry.forecasts.get()
    RefusedForecast.objects.create(call=first.call, entry=ask(QuestionFactory(markets=[long])), stated={}, reason=worst)
    asked = ask(QuestionFactory(text=worst))
    Forecast.objects.create(
        elicitation=first.elicitation, call=first.call, entry=asked, question=asked.question,
        family=first.family, release=first.release, methodology="v2", arm="priced", made_at=WEEK, rationale=worst,
        probabilities={"YES": 1.0, "NO": 0.0}, stated={side: worst},
    )  # fmt: skip
    maker = Maker.objects.create(name=BOUNDED[:80], address="ada@a.example", confirmed_at=WEEK)
    guest = Family.objects.create(
        slug="guest", display_name=BOUNDED[:80], provider=BOUNDED[:80], external=True, active=False, track="open",
        maker=maker, color="#123456",
    )  # fmt: skip
    AgentVersion.objects.create(family=guest, number=1, began_at=WEEK, note=BOUNDED[:200])
    resolve(market, side)
    compute_scores(at=WEEK.replace(month=5))
    chain_all()


ECHOED = (
    "/markets/?q=%22%3E%3Cscript%3Ealert(6)%3C/script%3E",
    "/markets/?status=%22%3E%3Cscript%3Ealert(7)%3C/script%3E",
    "/nowhere/%22%3E%3Cscript%3Ealert(8)%3C/script%3E/",
)
"""Addresses whose pages show what was asked."""


def test_nothing_hostile_survives_on_any_page(client: Client, hostile: None) -> None:
    faults: dict[str, list[str]] = {}
    visible = 0
    for address in (*pages(of_each=None), *ECHOED):
        answer = client.get(address, follow=True)
        assert answer.status_code in (200, 404, REFUSED.get(address)), address
        if not answer["Content-Type"].startswith("text/html"):
            continue
        reader = Reader()
        reader.feed(answer.content.decode())
        visible += answer.content.decode().count("{{ secret }}")
        if reader.faults or reader.open:
            faults[address] = [*reader.faults[:5], *(f"<{tag}> stays open" for tag, _ in reader.open)]
    assert faults == {}
    assert visible > 30  # it is all there to be read
    assert ModelCall.objects.filter(decision__isnull=False).get().raw_response.startswith("\"'><script>")


@pytest.mark.parametrize("name", ["decisions", "resolutions"])
def test_hostile_text_leaves_a_feed_well_formed(client: Client, hostile: None, name: str) -> None:
    answer = client.get(f"/feeds/{name}.atom")
    assert answer.status_code == 200
    feed = ElementTree.fromstring(answer.content)
    entries = feed.findall("{http://www.w3.org/2005/Atom}entry")
    assert entries
    for entry in entries:
        summary = entry.findtext("{http://www.w3.org/2005/Atom}summary") or ""
        reader = Reader()
        reader.feed(summary)
        assert reader.faults == []
        assert {tag for tag, _ in reader.open} == set()
        assert RTL not in summary
