"""Polystrat's bets: what a model said through a tool, the price that was paid, and who won.

A row is a bet; the forecast is its `p_yes`. The forecaster is the model with its tool, whichever agent asked: the
arena compares models. Bets at one instant on one and the same forecast are one forecast. The price paid is the ask of
the side bought; the other side's is taken as what is left of 1, as the suite takes a NO price that nobody quoted.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scoring.imports.documents import lines
from scoring.imports.rows import (
    YES,
    Part,
    Reading,
    Repeated,
    Row,
    Said,
    Titled,
    Unread,
    Unusable,
    gathered,
    number,
    price,
    probability,
    required,
    seconds,
)

_YES_INDEX, _NO_INDEX = 0, 1
_TOLERANCE = 1e-6


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file."""
    return [Part((file,), partial(_read, file)) for file in files]


def _read(file: Path) -> Reading:
    titles: dict[str, Titled] = {}
    return gathered(_said(file, titles), titles)


def _said(file: Path, titles: dict[str, Titled]) -> Iterator[Said]:
    seen: set[tuple[str, str, float | None, float | None]] = set()
    for line, record in lines(file):
        if isinstance(record, Unread):
            yield record
            continue
        try:
            row = _row(line, record)
        except Unusable as error:
            yield Unread(line, str(error))
            continue
        forecast = (row.forecaster, row.question, row.made_at, row.probability)
        yield Repeated(line) if forecast in seen else row
        seen.add(forecast)
        titles.setdefault(row.question, Titled(row.question, str(record.get("title") or ""), closed_at=row.closed_at))


def _row(line: int, record: Any) -> Row:
    forecaster = f"{required(record, 'mech_model')} · {required(record, 'mech_tool')}"
    p = probability(record.get("p_yes"), "p_yes")
    if record.get("p_no") is not None and abs(p + probability(record["p_no"], "p_no") - 1) > _TOLERANCE:
        raise Unusable("p_yes and p_no do not sum to 1")
    paid, side = price(record.get("executed_price")), record.get("outcome_index")
    yes = no = None
    if paid is not None and side == _YES_INDEX:
        yes = paid
    elif paid is not None and side == _NO_INDEX:
        yes, no = 1 - paid, paid
    return Row(
        line=line,
        forecaster=forecaster,
        question=str(required(record, "condition_id")),
        option=YES,
        probability=p,
        outcome=_outcome(record.get("winning_index")),
        odds=yes,
        no_odds=no,
        made_at=seconds(record.get("placed_at"), "placed_at"),
        closed_at=seconds(record.get("settled_at"), "settled_at"),
        exclusive=0.0,
    )


def _outcome(winner: Any) -> float | None:
    if winner is None:
        return None
    if number(winner, "winning_index") not in (_YES_INDEX, _NO_INDEX):
        raise Unusable(f"winning_index {winner} is neither 0 nor 1")
    return 1.0 if winner == _YES_INDEX else 0.0
