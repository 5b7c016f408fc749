"""Polystrat's bets: a model's forecast through a tool, the price paid, and the winner.

A row is a bet; the forecast is its `p_yes`. The forecaster is the model with its tool, whatever the agent. Bets at one
instant on the same forecast are one forecast. The price paid is the ask of the side bought; the other side's ask is
taken as 1 - price. Markets that differ in their strike alone ("be 16°C on March 13", "be 17°C or higher on March 13")
are one event, named by the pattern of their titles and the day.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from forecast_rank.readers.json_files import read_json_lines
from forecast_rank.readers.records import (
    YES,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    ParsedRecord,
    QuestionDescription,
    RepeatedRecord,
    collect_rows,
    parse_number,
    parse_price,
    parse_probability,
    parse_records,
    parse_time,
    required_field,
)

_YES_INDEX, _NO_INDEX = 0, 1
_TOLERANCE = 1e-6

_DATE = re.compile(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? (\d{1,2})\b(?:,? \d{4}\b)?", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER = r"[<>≤≥]?[$€£]?\d[\d.,]*\d|[<>≤≥]?[$€£]?\d"
_STRIKE = re.compile(
    rf"(?:\b(?:between|less than|more than|at least|above|below|over|under) )?(?:{_NUMBER})"
    rf"(?:[kmb]\b|[%°+]+[CF]?)?(?:(?:-|–| and | to )(?:{_NUMBER})(?:[kmb]\b|[%°+]+[CF]?)?)?"
    r"(?: or (?:higher|lower|above|below|more|less|fewer)\b)?",
    re.IGNORECASE,
)


def read(file: Path) -> ParsedFile:
    descriptions: dict[str, QuestionDescription] = {}
    keys: set[tuple[str, str, float | None, float | None]] = set()

    def parse(line: int, record: Any) -> Iterator[ParsedRecord]:
        row = _row(line, record)
        forecast = (row.forecaster, row.question, row.made_at, row.probability)
        yield RepeatedRecord(line) if forecast in keys else row
        keys.add(forecast)
        title = str(record.get("title") or "")
        descriptions.setdefault(row.question, QuestionDescription(row.question, title, closed_at=row.closed_at))

    return collect_rows(parse_records(read_json_lines(file), parse), descriptions)


def _row(line: int, record: Any) -> LongFormRow:
    forecaster = f"{required_field(record, 'mech_model')} · {required_field(record, 'mech_tool')}"
    p = parse_probability(record.get("p_yes"), "p_yes")
    if record.get("p_no") is not None and abs(p + parse_probability(record["p_no"], "p_no") - 1) > _TOLERANCE:
        raise InvalidRecord("p_yes and p_no do not sum to 1")
    paid, side = parse_price(record.get("executed_price")), record.get("outcome_index")
    closed_at = parse_time(record.get("settled_at"), "settled_at")
    yes = no = None
    if paid is not None and side == _YES_INDEX:
        yes = paid
    elif paid is not None and side == _NO_INDEX:
        yes, no = 1 - paid, paid
    return LongFormRow(
        line=line,
        forecaster=forecaster,
        question=str(required_field(record, "condition_id")),
        option=YES,
        probability=p,
        outcome=_outcome(record.get("winning_index")),
        odds=yes,
        no_odds=no,
        event=event_of(str(record.get("title") or ""), closed_at),
        made_at=parse_time(record.get("placed_at"), "placed_at"),
        closed_at=closed_at,
        exclusive=0.0,
    )


def _outcome(winner: Any) -> float | None:
    if winner is None:
        return None
    if parse_number(winner, "winning_index") not in (_YES_INDEX, _NO_INDEX):
        raise InvalidRecord(f"winning_index {winner} is neither 0 nor 1")
    return 1.0 if winner == _YES_INDEX else 0.0


def event_of(title: str, settled_at: float | None) -> str | None:
    """The pattern of a title, with "…" for its strike, and the day that the event is about.

    The day is the last date in the title, in the year that brings it closest to the settlement; without a date, the day
    of the settlement. None without a title or a settlement.
    """
    if not title or settled_at is None:
        return None
    settled = datetime.fromtimestamp(settled_at, UTC).date()
    dates = list(_DATE.finditer(title))
    starts = [0, *(match.end() for match in dates)]
    ends = [*(match.start() for match in dates), len(title)]
    parts = [_STRIKE.sub("…", title[start:end]) for start, end in zip(starts, ends, strict=True)]
    pattern = "".join(part + match[0] for part, match in zip(parts, dates, strict=False)) + parts[-1]
    day = settled
    if dates:
        month, number = _MONTHS.index(dates[-1][1].lower()) + 1, int(dates[-1][2])
        candidates = [day_in_year for year in (-1, 0, 1) if (day_in_year := _date(settled.year + year, month, number))]
        day = min(candidates, key=lambda day_in_year: abs(day_in_year - settled), default=settled)
    return f"{pattern} ({day.isoformat()})"


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
