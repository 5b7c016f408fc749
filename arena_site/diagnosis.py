"""The checks of `manage.py doctor`: each an item with one remedy. They read only, and buy no completion."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from agents.gateway.catalogue import ModelCatalogue, parse_catalogue
from agents.lineup_2026 import LINEUP_2026
from agents.models import Family, Release
from agents.services.call_costs import CHARACTERS_PER_TOKEN
from agents.services.cohort_start import lineup_releases
from agents.services.cost_estimate import EXPECTED_COMPLETION_TOKENS, estimate_forecasts, prompt_tokens
from agents.services.lineups import effective_from
from agents.services.release_check import approval, unusable_releases
from cohorts.models import Methodology
from cohorts.weeks import week_start
from markets.foundation.http import Exchange, HttpService, UpstreamError, parse_json
from markets.services.universes import NoMarkets
from markets.sources.polymarket import Clob
from markets.sources.registry import SOURCES

CLOCK_TOLERANCE_S = 60
PROMPT_CHARACTERS = 70_000
"""Characters of a prompt with 500 captured markets; assumed where no market is stored yet."""
SHIPPED_WEEKS, SHIPPED_MAX_TOKENS = 5, 16_000
"""The first methodology's, for a database without tables."""


@dataclass(frozen=True, slots=True)
class Item:
    """The result of a check; `remedy` is empty where nothing is to be done."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class Diagnosis:
    """The items of one run, in the order in which a newcomer would mend them."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.has_tables = False
        self.clocks: dict[str, float] = {}
        self.week_cost = Decimal(0)

    def items(self) -> Iterator[Item]:
        yield self._settings()
        yield self._database()
        for name in settings.ARENA_SOURCES:
            yield from self._venue(name)
        headers = {"Authorization": f"Bearer {settings.OPENROUTER_API_KEY}"} if settings.OPENROUTER_API_KEY else {}
        with HttpService(
            "gateway",
            settings.OPENROUTER_BASE_URL,
            timeout_s=settings.ARENA_VENUE_TIMEOUT_S,
            retries=0,
            headers=headers,
        ) as gateway:
            key, remaining = self._key(gateway)
            catalogue, reachable = self._catalogue(gateway)
        yield key
        yield reachable
        yield from self._releases(catalogue)
        yield self._cost()
        yield self._credits(remaining)
        yield self._clock()

    def _settings(self) -> Item:
        errors = [
            message
            for message in run_checks(include_deployment_checks=True)
            if message.level >= ERROR and str(message.id).startswith("arena.")
        ]
        remedy = (errors[0].hint or "Correct it in .env.") if errors else ""
        return Item("settings", not errors, "; ".join(error.msg for error in errors) or "complete", remedy)

    def _database(self) -> Item:
        try:
            tables = connection.introspection.table_names()
            executor = MigrationExecutor(connection)
            pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError as error:
            reason = str(error).strip().partition("\n")[0]
            return Item("database", False, reason, "Start the database, or correct DATABASE_URL in .env.")
        if not tables:
            return Item("database", True, "empty: `manage.py arena` and `manage.py migrate` make its tables")
        if pending:
            return Item("database", False, f"{len(pending)} migrations are missing", "uv run manage.py migrate")
        self.has_tables = True
        return Item("database", True, f"{connection.vendor}, migrated")

    def _venue(self, name: str) -> Iterator[Item]:
        remedy = f"Check the network and {'GAMMA' if name == 'polymarket' else name.upper()}_BASE_URL."
        try:
            with SOURCES[name].client() as client:
                if isinstance(client, HttpService):
                    self._get(client, "/")
                page = next(client.catalogue())
        except (UpstreamError, StopIteration) as error:
            yield Item(name, False, str(error) or "listed nothing", remedy)
            return
        reasons = f", {len(page.skipped)} skipped ({page.skipped[0].reason})" if page.skipped else ""
        yield Item(name, bool(page.rows), f"{len(page.rows)} markets read{reasons}", "" if page.rows else remedy)
        tokens = [outcome.token_id for row in page.rows[:1] for outcome in row.outcomes if outcome.token_id]
        if name == "polymarket" and tokens:
            with Clob(settings.CLOB_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S) as clob:
                books = clob.books(tokens)
            detail = "; ".join(books.failed) or f"{len(books.values)} order books read"
            yield Item("clob", not books.failed, detail, "Check CLOB_BASE_URL." if books.failed else "")

    def _key(self, gateway: HttpService) -> tuple[Item, Decimal | None]:
        """The key's check, and the US dollars that it may still spend, if the gateway tells."""
        if not settings.OPENROUTER_API_KEY:
            return Item("gateway key", False, "not set", "Put OPENROUTER_API_KEY=… into .env."), None
        try:
            answers = [self._get(gateway, path) for path in ("/key", "/credits")]
        except UpstreamError as error:
            return Item("gateway key", False, str(error), "Check the network and OPENROUTER_BASE_URL."), None
        status = answers[0].status
        if status in (401, 403):
            return Item("gateway key", False, f"refused with {status}", "Make a new key at the gateway."), None
        key, account = (_data(answer.body) if answer.status == 200 else {} for answer in answers)
        left = [_dollars(key.get("limit_remaining"))]
        total, used = _dollars(account.get("total_credits")), _dollars(account.get("total_usage"))
        left += [total - used] if total is not None and used is not None else []
        known = [amount for amount in left if amount is not None]
        return Item("gateway key", True, "accepted" if status == 200 else "set"), min(known, default=None)

    def _catalogue(self, gateway: HttpService) -> tuple[ModelCatalogue, Item]:
        empty = ModelCatalogue({}, 0)
        if settings.ARENA_LINEUP == "unchecked":
            return empty, Item("catalogue", True, "not read: ARENA_LINEUP=unchecked")
        remedy = "Check OPENROUTER_BASE_URL; for a gateway without a catalogue set ARENA_LINEUP=unchecked."
        try:
            response = self._get(gateway, "/models")
            body = parse_json(response.body)
        except (UpstreamError, ValueError) as error:
            return empty, Item("catalogue", False, str(error), remedy)
        rows = body.get("data") if isinstance(body, dict) else None
        catalogue = parse_catalogue(rows if isinstance(rows, list) else [])
        read = f"{len(catalogue.models)} models read, {catalogue.skipped} rows skipped"
        found = read if response.status == 200 else f"answered {response.status}"
        return catalogue, Item("catalogue", bool(catalogue.models), found, "" if catalogue.models else remedy)

    def _releases(self, catalogue: ModelCatalogue) -> Iterator[Item]:
        """An item per release of the coming line-up; adds up what one decision of each costs."""
        releases, weeks, max_tokens = self._line_up()
        week = effective_from(at=self.at) if self.has_tables else week_start(self.at)
        prompt, measured = self._prompt_tokens()
        unusable = {
            each.release.model_id: each for each in unusable_releases(releases, catalogue, week=week, weeks=weeks)
        }
        for release in releases:
            name, listed = f"release {release.model_id}", catalogue.models.get(release.model_id)
            self.week_cost += prompt * release.price_prompt + EXPECTED_COMPLETION_TOKENS * release.price_completion
            if settings.ARENA_LINEUP == "unchecked":
                yield Item(name, True, "not looked up")
            elif fault := unusable.get(release.model_id):
                yield Item(name, False, str(fault), approval([fault]))
            elif listed and listed.context_length and prompt + max_tokens > listed.context_length:
                detail = f"{listed.context_length:,} tokens do not hold {prompt:,} of prompt, {max_tokens:,} of answer"
                remedy = f"uv run manage.py approve_lineup {release.family.slug}=MODEL"
                yield Item(name, False, detail, remedy)
            else:
                basis = "today's" if measured else "an assumed"
                yield Item(name, True, f"listed; {basis} prompt of {prompt:,} tokens fits")

    def _line_up(self) -> tuple[Sequence[Release], int, int]:
        if self.has_tables:
            rules = Methodology.objects.current()
            return lineup_releases(effective_from(at=self.at)), rules.decision_weeks, rules.max_tokens
        shipped = [
            Release(
                family=Family(slug=each.slug),
                model_id=each.model_id,
                price_prompt=each.price_prompt,
                price_completion=each.price_completion,
            )
            for each in LINEUP_2026
        ]
        return shipped, SHIPPED_WEEKS, SHIPPED_MAX_TOKENS

    def _prompt_tokens(self) -> tuple[int, bool]:
        """The tokens of today's prompt, and whether it could be made."""
        try:
            if self.has_tables:
                return prompt_tokens(Methodology.objects.current(), self.at), True
        except NoMarkets:
            pass
        return int(PROMPT_CHARACTERS / CHARACTERS_PER_TOKEN), False

    def _cost(self) -> Item:
        forecasts = estimate_forecasts(at=self.at).cost_usd * 7 if self.has_tables else Decimal(0)
        limit = settings.ARENA_SPEND_LIMIT_USD
        told = f"${forecasts:.2f} of forecasts" if forecasts else "forecasts not known before the first day's"
        detail = f"about ${self.week_cost:.2f} for a cohort's decisions, {told}; limit ${limit:.2f} each"
        self.week_cost, ok = self.week_cost + forecasts, max(self.week_cost, forecasts) <= limit
        return Item("a week's cost", ok, detail, "" if ok else "Raise ARENA_SPEND_LIMIT_USD in .env.")

    def _credits(self, remaining: Decimal | None) -> Item:
        if remaining is None:
            return Item("gateway credits", True, "no limit told")
        ok = remaining >= self.week_cost
        remedy = "" if ok else "Buy credits, or raise the key's limit at the gateway."
        return Item("gateway credits", ok, f"${remaining:.2f} left; a week takes about ${self.week_cost:.2f}", remedy)

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
            return Item("clock", False, "no service told its time", "Make a service reachable, then run this again.")
        service, seconds = max(self.clocks.items(), key=lambda clock: abs(clock[1]))
        ok = abs(seconds) <= CLOCK_TOLERANCE_S
        detail = f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} {service}'s"
        return Item("clock", ok, detail, "" if ok else "Set this machine's clock (NTP).")


def _data(body: bytes) -> dict[str, Any]:
    try:
        parsed = parse_json(body)
    except ValueError:
        return {}
    data = parsed.get("data") if isinstance(parsed, dict) else None
    return data if isinstance(data, dict) else {}


def _dollars(raw: Any) -> Decimal | None:
    return Decimal(raw) if isinstance(raw, int | Decimal) and not isinstance(raw, bool) else None
