"""The plan of a month in which everything breaks: when jobs run, what is wrong with which service, who is killed."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from croniter import croniter

from tests.faults.breaking_proxy import EVIDENCE, GATEWAY, Break, Edit, failing, reset

STARTS = datetime(2026, 3, 1, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
COARSER = {
    "sync": "0 */4 * * *", "snapshots": "10 */4 * * *", "resolutions": "0 */8 * * *", "cohort": "0 */12 * * *",
    "decisions": "5 0,1,6,12,23 * * 0", "resume_forecasts": "0 3,9,15,21 * * *", "costs": "10 */8 * * *",
    "alerts": "2 */6 * * *", "archive": "40 5 * * 6", "ledger": "10 5 * * 3",
    "openings": "25 */3 * * *",
}  # fmt: skip
"""Cron lines of jobs that live run more often. The ledger is verified at the end of every day besides."""
KILLS = {
    4: ("forecasts", "call.answered"), 7: ("decisions", "decision.traded"), 9: ("sync", "sync.stored"),
    13: ("resolutions", "settlement.paid"), 17: ("scores", "scores.ranked"), 19: ("forecasts", "elicitation.recorded"),
    21: ("decisions", "call.sent"), 23: ("snapshots", "snapshots.marked"), 26: ("forecasts", "questions.frozen"),
    28: ("decisions", "call.stored"),
}  # fmt: skip
"""The job that is killed on a day, and the point at which."""
NEWEST_FROM = 7
"""The day from which cohorts have the newest methodology, with evidence."""
TOLD_BY = {
    "sync_markets": {"venue-down", "job-failed"}, "take_snapshots": {"venue-down", "prices-stale", "job-failed"},
    "run_decisions": {"tasks-failed", "release-gone", "venue-down", "job-failed"},
    "run_forecasts": {"tasks-failed", "release-gone", "venue-down", "job-failed"},
    "start_cohort": {"release-unusable", "job-failed"},
    "check_lineup": {"release-unusable", "job-failed"},
}  # fmt: skip
"""The alerts by which one hears that a run of a command has failed; of others it is `job-failed`."""
VISITS = 3
"""Agents from outside answer every so many days."""
VISITORS = {"closed": (12 * MINUTE, 2 * HOUR + 8 * MINUTE), "open": (7 * HOUR, 11 * HOUR)}
"""When they look for open tasks, by their tracks."""
ACTS = {6: "mistype", 8: "migrate_under_lock", 12: "void", 15: "change", 16: "announce_end"}
"""What somebody does at the noon of a day."""
ENDING, SUCCESSOR = "x-ai/grok-4.1-fast", "x-ai/grok-4.3-fast"
DEARER = "deepseek/deepseek-v3.2"


def settings(addresses: Mapping[str, str], webhook: str, folder: Path) -> dict[str, str]:
    """The environment of an arena whose services are at these addresses, and give up soon."""
    bases = {f"{name.upper()}_BASE_URL": addresses[name] for name in ("gamma", "clob", "kalshi", "openrouter")}
    folders = {f"ARENA_{name}_DIR": str(folder / name.lower()) for name in ("SPOOL", "BACKUP", "EXPORT")}
    return bases | folders | {
        "ARENA_SOURCES": "polymarket,kalshi", "OPENROUTER_API_KEY": "sandbox", "ARENA_ALERT_WEBHOOK": webhook,
        "ARENA_EVIDENCE": "exa", "ARENA_EVIDENCE_KEY": "sandbox", "ARENA_EVIDENCE_BASE_URL": addresses["exa"],
        "ARENA_VENUE_TIMEOUT_S": "3", "ARENA_LLM_TIMEOUT_S": "6", "ARENA_LLM_STALL_S": "3", "ARENA_LEASE_S": "60",
        "ARENA_LLM_TRANSPORT_RETRIES": "1", "ARENA_SPEND_LIMIT_USD": "500", "ALLOWED_HOSTS": "testserver,localhost",
    }  # fmt: skip


def timetable(day: datetime) -> list[tuple[Any, ...]]:
    """What happens on a day: instant, method of the month and arguments; jobs of one instant as on the dashboard."""
    from arena_site.jobs import JOBS

    number, rows = (day - STARTS) // DAY, list[tuple[Any, ...]]()
    if number == NEWEST_FROM:
        rows.append((day, "command", "start_cohort", "--methodology", "v3"))
    for job in JOBS:
        for at in croniter(COARSER.get(job.function, job.cron), day - MINUTE / 60).all_next(datetime):
            if at >= day + DAY:
                break
            rows.append((at, "job", job.function))
    if number % VISITS == 0:
        rows += [(day + after, "visit", track) for track in VISITORS for after in VISITORS[track]]
    rows.append((day + 10 * HOUR, "operate"))
    if number in ACTS:
        rows.append((day + 12 * HOUR, ACTS[number]))
    rows.append((day + DAY - 10 * MINUTE, "check"))
    return sorted(rows, key=itemgetter(0))


def visitors_answer(task: Any) -> Any:
    """A bet on the first market's first side, or certainty of each first option."""
    from tests.season.full_season import sure

    if "agent" not in task:
        return sure(task)
    columns, market, *_ = map(json.loads, task["blocks"]["MARKETS"].splitlines())
    row = dict(zip(columns, market, strict=True))
    bet = {"market_id": row["market_id"], "side": next(iter(row["prices"])), "amount": 100}
    return {"action": "BET", "bets": [bet], "reasoning": "the busiest market"}


@dataclass(frozen=True)
class Trouble:
    """A fault of a service from one instant to another, and the kinds of alerts that must tell of it."""

    first: datetime
    last: datetime
    fault: Break | Edit
    alerts: frozenset[str]


@dataclass(frozen=True)
class Targets:
    """Ids of markets that are chosen while the month is played."""

    voided: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)


def troubles(targets: Targets) -> Iterator[Trouble]:
    for start, end, fault, *alerts in (
        (2.4, 3, Edit("half a catalogue unreadable", "/gamma/", is_made_unreadable), "catalogue-unreadable"),
        (3.3, 3.7, Break("a venue away", "/(gamma|clob)/", reset), "venue-down", "prices-stale"),
        (9, 99, Edit("a price rise", "/openrouter/.*/models", is_made_dearer), "line-up-proposed"),
        (10, 11, Break("no evidence", EVIDENCE, failing(503)), "conditions-left-out"),
        (11, 12, Break("a day of 401", GATEWAY, failing(401)), "tasks-failed", "tasks-missed"),
        (12.5, 99, Edit("a voided market", "/gamma/", partial(is_voided, targets.voided))),
        (14, 15, Break("a day of 402", GATEWAY, failing(402)), "tasks-failed", "tasks-missed"),
        (15.5, 99, Edit("a changed result", "/gamma/", partial(is_reversed, targets.changed)), "result-changed"),
    ):
        yield Trouble(STARTS + start * DAY, STARTS + end * DAY, fault, frozenset(alerts))


# ── changes of a row: each returns whether it made one ────────────────────────────────────────────


def is_made_unreadable(row: dict[str, Any]) -> bool:
    is_target = str(row.get("id", "")).isdigit() and int(row["id"]) % 2 == 0
    if is_target:
        row["version"] = "v9"
    return is_target


def is_made_dearer(row: dict[str, Any]) -> bool:
    is_target = row.get("id") == DEARER
    if is_target:
        row["pricing"] = row["pricing"] | {"prompt": "0.000009", "completion": "0.00009"}
    return is_target


def is_voided(ids: set[str], row: dict[str, Any]) -> bool:
    """Closed, with the oracle's word that every outcome is paid the same."""
    is_target = row.get("id") in ids
    if is_target:
        count = len(json.loads(row["outcomes"]))
        prices = json.dumps([str(1 / count)] * count)
        row.update(closed=True, acceptingOrders=False, outcomePrices=prices, umaResolutionStatus="resolved")
    return is_target


def is_reversed(ids: set[str], row: dict[str, Any]) -> bool:
    is_target = row.get("id") in ids
    if is_target:
        row["outcomePrices"] = json.dumps(list(reversed(json.loads(row["outcomePrices"]))))
    return is_target
