"""The past of an archive as rows of a scratch database, in the state of the first instant, and what happened since."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, models, transaction

from arena_verifier.rows import Row
from cohorts.models import Methodology
from foundation.bulk import chunks, rows_by
from markets.models import (
    EvidenceSnippet,
    Market,
    Outcome,
    PriceObservation,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
)
from scoring.exports.sound_archives import block_texts, instant, methodologies
from scoring.exports.tables import TABLES_BY_NAME
from scoring.exports.verification.archive_reader import Archive

BATCH = 500
STATE_OF_MARKETS = ("status", "closed_at", "resolved_at", "winning_outcome")
STATE_OF_QUESTIONS = ("status", "closed_at", "resolved_at")
LAST_PRICES = ("price", "price_at", "price_source", "price_stale")


class UnplayableArchive(Exception):
    """The archive does not hold what a rehearsal of the span needs."""


@dataclass(slots=True)
class Timeline:
    """The events from `start` to `end`, without weeks and questions that began at `end`."""

    start: datetime
    end: datetime
    closings: dict[datetime, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The ids of the markets that were seen closed at an instant."""
    resolutions: dict[datetime, dict[int, int | None]] = field(default_factory=lambda: defaultdict(dict))
    """The winning outcome by market, null for a cancelled one."""
    cohorts: list[Row] = field(default_factory=list)
    universes: list[Universe] = field(default_factory=list)
    question_sets: list[QuestionSet] = field(default_factory=list)
    snapshots: list[datetime] = field(default_factory=list)
    """The last instant of each day at which the archive has a snapshot."""


def read_timeline(tables: Archive, *, start: datetime, end: datetime) -> Timeline:
    """The weeks and the days of snapshots of a span. Raises UnplayableArchive where it has no week and no questions."""
    timeline = Timeline(start, end)
    for row in tables.rows("cohorts"):
        if start <= instant(row["week_start"]) < end and instant(row["started_at"]) <= end:
            timeline.cohorts.append(row)
    has_questions = any(start <= instant(row["frozen_at"]) < end for row in tables.rows("question_sets"))
    if not timeline.cohorts and not has_questions:
        raise UnplayableArchive(f"the archive has no week from {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC")
    last_of_day: dict[Any, datetime] = {}
    for row in tables.rows("snapshots"):
        taken_at = instant(row["taken_at"])
        if start <= taken_at <= end:
            last_of_day[taken_at.date()] = max(taken_at, last_of_day.get(taken_at.date(), taken_at))
    timeline.snapshots = sorted(last_of_day.values())
    return timeline


def load_past(tables: Archive, timeline: Timeline) -> None:
    """Fills an empty, migrated database with an archive's markets, prices, universes and questions.

    What changes in the span goes into the timeline. Raises UnplayableArchive where rows are missing.
    """
    try:
        with transaction.atomic():
            _load_methodologies(tables)
            _load_markets(tables, timeline)
            texts = block_texts(tables)
            _load_universes(tables, timeline, texts)
            _load_questions(tables, timeline, texts)
    except (IntegrityError, LookupError) as error:  # sound as far as it goes, but a part
        raise UnplayableArchive(f"the archive lacks rows that others refer to: {error}") from error


def _load_methodologies(tables: Archive) -> None:
    """Adds the versions that this release does not bring; one that differs from its own is refused."""
    stored = rows_by("version", Methodology.objects.all())
    for methodology, sha256 in methodologies(tables):
        version = methodology.version
        if version not in stored:
            methodology.save()
        elif stored[version].sha256 != sha256:
            raise UnplayableArchive(f"the archive's methodology {version} is not the {version} of this release")


def _load_markets(tables: Archive, timeline: Timeline) -> None:
    start, end = timeline.start, timeline.end

    def state(row: Row) -> Row:
        """The market's state at the start; what changes later goes into the timeline."""
        closed_at, resolved_at = (row[name] and instant(row[name]) for name in ("closed_at", "resolved_at"))
        if resolved_at and start <= resolved_at <= end:
            timeline.resolutions[resolved_at][row["id"]] = row["winning_outcome"]
        if closed_at and start <= closed_at <= end:
            timeline.closings[closed_at].append(row["id"])
        seen_at = {"first_seen_at": start, "refreshed_at": end + timedelta(microseconds=1)}
        if resolved_at and resolved_at < start:
            return seen_at | {
                "status": row["status"], "closed_at": closed_at, "resolved_at": resolved_at,
                "winning_outcome_id": row["winning_outcome"],
            }  # fmt: skip
        if closed_at and closed_at < start:
            return seen_at | {"status": Market.Status.CLOSED, "closed_at": closed_at}
        return seen_at

    _load(tables, "markets", Market, without=STATE_OF_MARKETS, complete=state)
    _load(tables, "outcomes", Outcome, without=LAST_PRICES)
    _load(tables, "prices", PriceObservation, keep=lambda row: instant(row["observed_at"]) <= end)


def _load_universes(tables: Archive, timeline: Timeline, texts: Mapping[tuple[str, int], str]) -> None:
    universes = _load(
        tables, "universes", Universe,
        keep=lambda row: instant(row["frozen_at"]) < timeline.end,
        complete=lambda row: {"market_block": texts["markets", row["id"]]},
    )  # fmt: skip
    _load(tables, "universe_entries", UniverseEntry, keep=lambda row: row["universe"] in universes)
    timeline.universes += Universe.objects.filter(frozen_at__gte=timeline.start).order_by("frozen_at")


def _load_questions(tables: Archive, timeline: Timeline, texts: Mapping[tuple[str, int], str]) -> None:
    """Loads the question sets frozen in the span, with all that they ask, not resolved yet."""
    sets = _load(
        tables, "question_sets", QuestionSet,
        keep=lambda row: timeline.start <= instant(row["frozen_at"]) < timeline.end,
    )  # fmt: skip
    questions = set()
    for row in tables.rows("question_entries"):
        if row["question_set"] in sets:
            questions.add(row["question"])
    _load(tables, "questions", Question, without=STATE_OF_QUESTIONS, keep=lambda row: row["id"] in questions)
    _load(
        tables, "question_options", QuestionOption, without=["happened"], keep=lambda row: row["question"] in questions
    )
    stored = _load(tables, "question_entries", QuestionEntry, keep=lambda row: row["question_set"] in sets)
    _load(tables, "evidence", EvidenceSnippet, without=["states_outcome"], keep=lambda row: row["entry"] in stored)
    _load(
        tables, "question_batches", QuestionBatch,
        keep=lambda row: row["question_set"] in sets,
        complete=lambda row: {
            "block": texts["questions", row["id"]], "evidence_block": texts.get(("evidence", row["id"]), ""),
        },
    )  # fmt: skip
    timeline.question_sets += QuestionSet.objects.order_by("frozen_at")


def _load(
    tables: Archive,
    name: str,
    model: type[models.Model],
    *,
    without: tuple[str, ...] | list[str] = (),
    keep: Callable[[Row], bool] = lambda row: True,
    complete: Callable[[Row], Row] = lambda row: {},
) -> set[int]:
    """Stores those rows of a table that `keep` takes, with the values that `complete` adds; returns their ids."""
    fields = rows_by("attname", model._meta.concrete_fields)
    columns = []
    for column in TABLES_BY_NAME[name].columns:
        if column.path in fields and column.name not in without:
            columns.append(column)
    ids = set()
    selected = filter(keep, tables.rows(name))
    for rows in chunks(selected, BATCH):
        instances = []
        for row in rows:
            values = {column.path: _value(fields[column.path], row[column.name]) for column in columns}
            instances.append(model(**values, **complete(row)))
            ids.add(row.get("id", 0))
        model._default_manager.bulk_create(instances)
    return ids


def _value(field: models.Field, value: Any) -> Any:
    if field.null and value == "":
        return None
    return value if isinstance(field, models.JSONField) else field.to_python(value)
