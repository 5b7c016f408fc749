"""The checks of `manage.py doctor`: each an item with one remedy. They read only, and buy no completion unasked."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.db import DatabaseError, connection
from django.db.models.functions import Length

from agents import clients
from agents.gateway.catalogue import ModelCatalogue
from agents.gateway.completions import GatewayFailure, parse_account_credits, parse_remaining_credits
from agents.lineup_2026 import LINEUP_2026
from agents.models import Family, Release
from agents.services.cost_estimate import CostPlan, plan_costs
from agents.services.costs import CHARACTERS_PER_TOKEN
from agents.services.expected_costs import PROMPT_TOKENS
from agents.services.lineups import effective_from, lineup_releases
from agents.services.release_check import approval, unusable_releases
from agents.services.run_settings import spend_limit
from agents.services.search_check import check_schema, needs_check, search_condition
from agents.services.spending import TASK_MODELS, spending_by_protocol
from arena_site.checks import SETTINGS
from arena_site.operations.health import missing_migrations
from arena_site.operations.installation import Item, installation_items, item
from cohorts.methodologies.v2 import V2
from cohorts.models import Methodology
from cohorts.weeks import week_start
from foundation.http import Exchange, HttpService, UpstreamError, one_line, parse_json
from foundation.layout import layout_refusal
from markets.models import Universe
from markets.sources.base import base_url_setting
from markets.sources.evidence.base import SourceUnavailable
from markets.sources.polymarket import Clob
from markets.sources.registry import SOURCES, evidence_source

CLOCK_TOLERANCE_S = 60
EVIDENCE_QUERY = "Who will win the next presidential election?"


class Diagnosis:
    """The items of one run, in the order in which a newcomer would mend them.

    With `tests_search` each model that has not been tested is asked once with a search tool, which costs money.
    """

    def __init__(self, at: datetime, *, tests_search: bool = False) -> None:
        self.at, self.tests_search = at, tests_search
        self.has_tables = False
        self.clocks: dict[str, float] = {}
        self.plan: CostPlan | None = None

    def items(self) -> Iterator[Item]:
        yield self._settings()
        yield self._database()
        for name in settings.ARENA_SOURCES:
            yield from self._venue(name)
        if settings.ARENA_EVIDENCE:
            yield self._evidence()
        key, remaining = self._key()
        yield key
        catalogue, reachable = self._catalogue()
        yield reachable
        yield from self._releases(catalogue)
        yield from self._searches()
        yield self._cost()
        yield from self._spending()
        yield self._credits(remaining)
        yield self._clock()
        yield from installation_items(has_tables=self.has_tables)

    def _settings(self) -> Item:
        messages = run_checks(tags=[SETTINGS], include_deployment_checks=True)
        errors = [message for message in messages if message.level >= ERROR]
        remedy = (errors[0].hint or "Correct it in .env.") if errors else ""
        return item("settings", not errors, "; ".join(map(attrgetter("msg"), errors)) or "complete", remedy)

    def _database(self) -> Item:
        try:
            tables = connection.introspection.table_names()
            refusal = layout_refusal(connection)
            missing = missing_migrations()
        except DatabaseError as error:
            reason = connection_fault(error)
            remedy = "Start the database"
            if reason.startswith('database "') and reason.endswith("does not exist"):
                remedy = "Make it with createdb"
            elif reason.startswith("the folder "):
                remedy = "Make the folder"
            return item("database", False, reason, f"{remedy}, or correct DATABASE_URL in .env.")
        if not tables:
            return item("database", True, "empty: `manage.py arena` and `manage.py migrate` make its tables")
        if refusal:
            fault, _, remedy = refusal.partition(": ")
            return item("database", False, fault, remedy)
        if missing:
            return item("database", False, f"{len(missing)} migrations are missing", "uv run manage.py migrate")
        self.has_tables = True
        return item("database", True, f"{connection.vendor}, migrated")

    def _venue(self, name: str) -> Iterator[Item]:
        remedy = f"Check the network and {base_url_setting(SOURCES[name].services[0])}."
        try:
            with SOURCES[name].client() as client:
                if isinstance(client, HttpService):
                    self._get(client, "/")
                page = next(client.catalogue())
        except (UpstreamError, StopIteration) as error:
            yield item(name, False, str(error) or "listed nothing", remedy)
            return
        reasons = f", {len(page.skipped)} skipped ({page.skipped[0].reason})" if page.skipped else ""
        yield item(name, bool(page.rows), f"{len(page.rows)} markets read{reasons}", remedy)
        tokens = [outcome.token_id for row in page.rows[:1] for outcome in row.outcomes if outcome.token_id]
        if name == "polymarket" and tokens:
            with Clob(settings.CLOB_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S) as clob:
                books = clob.books(tokens)
            detail = "; ".join(books.failed) or f"{len(books.values)} order books read"
            yield item("clob", not books.failed, detail, "Check CLOB_BASE_URL.")

    def _evidence(self) -> Item:
        """A search for one query; of a folder the texts that stand for any question."""
        remedy = "Check ARENA_EVIDENCE, ARENA_EVIDENCE_KEY and ARENA_EVIDENCE_BASE_URL, and the account there."
        try:
            with evidence_source() as source:
                answer = source.texts([EVIDENCE_QUERY], lambda: self.at, settings.ARENA_VENUE_TIMEOUT_S)
        except SourceUnavailable as error:
            return item("evidence", False, str(error), remedy)
        number = len(answer.texts[EVIDENCE_QUERY])
        detail = f"{number} texts read, {answer.unreadable} not readable"
        return item("evidence", bool(number) or (source.is_stored and not answer.unreadable), detail, remedy)

    def _key(self) -> tuple[Item, Decimal | None]:
        """The key's check, and the US dollars that it may still spend, if the gateway states it."""
        name, key = "gateway key", settings.OPENROUTER_API_KEY
        url, timeout_s = settings.OPENROUTER_BASE_URL, settings.ARENA_VENUE_TIMEOUT_S
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            with HttpService("gateway", url, timeout_s=timeout_s, retries=0, headers=headers) as gateway:
                answers = [self._get(gateway, path) for path in ("/key", "/credits")]
        except UpstreamError as error:
            answers, fault = [], str(error)
        if not key:
            return item(name, False, "not set", "Put OPENROUTER_API_KEY=… into .env."), None
        if not answers:
            return item(name, False, fault, "Check the network and OPENROUTER_BASE_URL."), None
        status = answers[0].status
        if status in (401, 403):
            return item(name, False, f"refused with {status}", "Make a new key at the gateway."), None
        limits, account = map(_parsed, answers)
        amounts = (parse_remaining_credits(limits), parse_account_credits(account))
        balances = [amount for amount in amounts if amount is not None]
        return item(name, True, "accepted" if status == HTTPStatus.OK else "set"), min(balances, default=None)

    def _catalogue(self) -> tuple[ModelCatalogue, Item]:
        name, empty = "catalogue", ModelCatalogue({}, 0)
        try:
            catalogue = clients.model_catalogue()
        except GatewayFailure as failure:
            remedy = "Check OPENROUTER_BASE_URL; for a gateway without a catalogue set ARENA_LINEUP=unchecked."
            return empty, item(name, False, failure.reason, remedy)
        if catalogue is None:
            return empty, item(name, True, "not read: ARENA_LINEUP=unchecked")
        read = f"{len(catalogue.models)} models read, {catalogue.skipped} rows skipped"
        return catalogue, item(name, True, read)

    def _releases(self, catalogue: ModelCatalogue) -> Iterator[Item]:
        """An item per release of the coming line-up, each with the catalogue's terms; plans what they cost."""
        releases, methodology = self._line_up()
        max_tokens, weeks = methodology.max_tokens, methodology.decision_weeks
        week = effective_from(at=self.at) if self.has_tables else week_start(self.at)
        frozen_prompt = self._frozen_prompt_tokens()
        prompt = frozen_prompt or PROMPT_TOKENS
        read_catalogue = catalogue if catalogue.models else None
        unusable = unusable_releases(releases, read_catalogue, week=week, weeks=weeks)
        faults = {fault.release.model_id: str(fault) for fault in unusable}
        renewal = approval(unusable) if self.has_tables else "uv run manage.py arena --current"
        for release in releases:
            name, listed = f"release {release.model_id}", catalogue.models.get(release.model_id)
            if fault := faults.get(release.model_id):
                yield item(name, False, fault, renewal)
            elif not catalogue.models:
                yield item(name, settings.ARENA_LINEUP == "unchecked", "not looked up", "Mend the catalogue first.")
            elif listed and listed.context_length and prompt + max_tokens > listed.context_length:
                detail = f"{listed.context_length:,} tokens do not hold {prompt:,} of prompt, {max_tokens:,} of answer"
                yield item(name, False, detail, f"uv run manage.py approve_lineup {release.family.slug}=MODEL")
            else:
                basis = "the newest" if frozen_prompt else "an assumed"
                yield item(name, True, f"listed; {basis} prompt of {prompt:,} tokens fits")
        shipped = None if self.has_tables else methodology
        self.plan = plan_costs(
            at=self.at, releases=releases, methodology=shipped, catalogue=catalogue, stored=self.has_tables
        )

    def _searches(self) -> Iterator[Item]:
        """Items on whether models keep to their answer's schema beside a search tool, where one is used or tested."""
        methodology = Methodology.objects.forecasting() if self.has_tables else None
        condition = search_condition(methodology)
        if methodology is None or condition is None:
            if self.tests_search:
                detail = "no condition with a search tool is on"
                yield item("search", False, detail, "Put ARENA_SEARCH=true into .env, and publish methodology v3.")
            return
        untested = [release for release in self._line_up()[0] if needs_check(release)]
        if not self.tests_search:
            detail = f"{len(untested)} models whose answer's schema is not tested beside it"
            yield item("search", True, f"{detail}: doctor --test-search asks each once, for money")
            return
        with clients.gateway() as gateway:
            for release in untested:
                check = check_schema(release, methodology, condition, gateway, at=self.at)
                keeps_schema = check.keeps_schema
                words = {True: "keeps to the schema", False: "is asked without it", None: "not known"}[keeps_schema]
                cost = "" if check.cost_usd is None else f"; cost ${check.cost_usd:.4f}, in no cap"
                detail = f"{words}: {check.detail}{cost}"
                yield item(f"search {release.model_id}", keeps_schema is not None, detail, "Run this again later.")
        yield item("search", True, f"{len(untested)} models asked")

    def _line_up(self) -> tuple[list[Release], Methodology]:
        if self.has_tables:
            return lineup_releases(effective_from(at=self.at)), Methodology.objects.current()
        shipped = [Release(family=Family(slug=entry.slug), **entry.release_fields) for entry in LINEUP_2026]
        return shipped, Methodology(**V2)

    def _frozen_prompt_tokens(self) -> int:
        """The tokens of the newest frozen markets; 0 without any."""
        newest = Universe.objects.order_by("-week_start") if self.has_tables else Universe.objects.none()
        return int((newest.values_list(Length("market_block"), flat=True).first() or 0) / CHARACTERS_PER_TOKEN)

    def _cost(self) -> Item:
        plan, default = self.plan, settings.ARENA_SPEND_LIMIT_USD
        assert plan is not None, "the releases come first"
        trading, forecasts = (spend_limit(name, default) if self.has_tables else default for name in TASK_MODELS)
        ok = plan.decisions_usd <= trading and plan.forecasts_usd <= forecasts
        limits = f"${trading:.2f}" if trading == forecasts else f"${trading:.2f} and ${forecasts:.2f}"
        detail = f"{plan}; limit {limits} for each protocol's week"
        return item("a week's cost", ok, detail, "Raise ARENA_SPEND_LIMIT_USD in .env, or the cap on the dashboard.")

    def _spending(self) -> Iterator[Item]:
        """An item for each protocol that has cost anything this week."""
        for spending in spending_by_protocol(week_start(self.at)) if self.has_tables else ():
            if spending.spent:
                parts = f"${spending.billed:.2f} billed, ${spending.booked:.2f} booked and not billed yet"
                detail = spending.message if spending.is_reached else f"{parts}; limit ${spending.cap:.2f}"
                yield item(f"{spending.protocol} spend this week", not spending.is_reached, detail, spending.remedy)

    def _credits(self, remaining: Decimal | None) -> Item:
        name = "gateway credits"
        if remaining is None:
            return item(name, True, "the gateway states no limit")
        week = self.plan.week_usd if self.plan else Decimal(0)
        detail = f"${remaining:.2f} left; a week takes about ${week:.2f}"
        return item(name, remaining >= week, detail, "Buy credits, or raise the key's limit at the gateway.")

    def _get(self, service: HttpService, path: str) -> Exchange:
        """The response of any status, its `Date` compared with this machine's clock."""
        response = service.exchange("GET", path)
        for date in response.headers.get_list("Date"):
            with suppress(ValueError):
                theirs = parsedate_to_datetime(date)
                ahead = (datetime.now(UTC) - theirs.replace(tzinfo=theirs.tzinfo or UTC)).total_seconds()
                self.clocks[service.service] = max(self.clocks.get(service.service, 0), ahead, key=abs)
        return response

    def _clock(self) -> Item:
        if not self.clocks:
            return item("clock", False, "no service stated its time", "Make a service reachable, then run this again.")
        service, seconds = max(self.clocks.items(), key=lambda clock: abs(clock[1]))
        ok = abs(seconds) <= CLOCK_TOLERANCE_S
        detail = f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} {service}'s"
        return item("clock", ok, detail, "Set this machine's clock (NTP).")


def connection_fault(error: DatabaseError) -> str:
    """Why there is no connection, in one line: what the server says last, or the folder that SQLite misses."""
    folder = Path(str(connection.settings_dict["NAME"])).parent
    if connection.vendor == "sqlite" and not folder.is_dir():
        return f"the folder {folder} is missing"
    lines = list(filter(str.strip, str(error).splitlines()))
    return one_line(lines[-1].rpartition("FATAL:")[2]) if lines else type(error).__name__


def _parsed(answer: Exchange) -> Any:
    """The JSON of a successful answer; None of another."""
    try:
        return parse_json(answer.body) if answer.status == HTTPStatus.OK else None
    except ValueError:
        return None
