"""Forecasts of a file or frame as a panel, with the line and the reason of every row that is rejected."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.columns import BINARY
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import FRAME
from forecast_rank.files.headings import NOT_NAMED, InvalidHeadings, NamedHeadings, check_named
from forecast_rank.files.input_table import InputTable
from forecast_rank.files.plain_files import plain_file
from forecast_rank.files.reading import read_plain_file, read_table
from forecast_rank.metrics.flat_arrays import Codes, spans
from forecast_rank.metrics.panel import Panel, Questions
from forecast_rank.ranking.row_codes import Mask, changes, name_codes, offsets_of
from forecast_rank.ranking.settings import InvalidSetting
from forecast_rank.ranking.validation import ForecastValidator
from forecast_rank.readers.formats import PUBLISHED_FORMATS, read_published

REASONS_SHOWN = 5
ROW_ORDER = "the rows of the question's first forecast"
CATEGORY_ORDER, GIVEN_ORDER = "the categories of the column 'option'", "the setting 'order'"


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A row that does not count.

    Attributes
    ----------
    row : int
        Line of the file at which the row begins; in a Parquet file or a frame its number from 1.
    why : str
        With the column and the cell as written.
    kind : str
        The reason without the cell, the same for all rows of a group.
    cell : str or None
        The cell as written.
    fix : str
        How to make the row count.
    """

    row: int
    why: str
    kind: str = ""
    cell: str | None = None
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RejectionGroup:
    """Rows that are rejected for the same reason.

    Attributes
    ----------
    count : int
    why : str
        With the cell if it is one row.
    first : int
        Line of the first row.
    cell : str or None
        The cell of the first row as written.
    fix : str
        How to make the rows count.
    """

    count: int
    why: str
    first: int
    cell: str | None
    fix: str

    def __str__(self) -> str:
        if self.count == 1:
            text = f"1 row: {self.why}, at line {self.first}"
        else:
            text = f"{self.count:,} rows: {self.why}, first at line {self.first}"
            text += f" ({self.cell})" if self.cell else ""
        return f"{text}; {self.fix}" if self.fix else text


def group_rejections(rejected: Iterable[RejectedLine]) -> list[RejectionGroup]:
    """The rejected rows by reason, the largest group first."""
    groups: dict[str, list[RejectedLine]] = {}
    for line in rejected:
        groups.setdefault(line.kind or line.why, []).append(line)
    times = [
        RejectionGroup(len(lines), kind if len(lines) > 1 else first.why, first.row, first.cell, first.fix)
        for kind, lines in groups.items()
        for first in lines[:1]
    ]
    return sorted(times, key=lambda group: (-group.count, group.first))


@dataclass(frozen=True, slots=True)
class LoadedForecasts:
    """The forecasts of a file or frame.

    Attributes
    ----------
    panel : Panel
        The forecasts that count.
    rejected : list of RejectedLine
        In the order of the file.
    rows : int
        Rows in the file.
    superseded : int
        Valid rows that do not count because the forecaster made a later forecast on the question.
    repeated : int
        Rows that do not count because they equal an earlier row in every column.
    normalised : int
        Forecasts whose probabilities were divided by their sum.
    ignored : list of str
        Unknown columns.
    notes : list of str
        Facts about the file that a reader should know.
    understood : dict of str to str
        How the file was read: its format, separator, columns and units.
    source : str or None
        The file or files.
    option_order : str
        What gives the options of a question their order.
    revisions : Panel or None
        Every version, made in time, of the forecasts that count; None if they were not asked for.
    """

    panel: Panel
    rejected: list[RejectedLine]
    rows: int
    superseded: int
    repeated: int
    normalised: int
    ignored: list[str]
    notes: list[str]
    understood: dict[str, str]
    source: str | None = None
    option_order: str = ROW_ORDER
    revisions: Panel | None = None

    def explanation(self) -> str:
        """How the file was understood, what counts and what does not, in a few lines."""
        panel = self.panel
        counts = {
            "rows": f"{self.rows:,}, of which {len(self.rejected):,} are rejected, {self.superseded:,} superseded and "
            f"{self.repeated:,} repeated",
            "forecasts": f"{len(panel):,} by {len(panel.forecasters):,} forecasters on {len(panel.questions):,} "
            f"questions, {int(panel.priced.sum()):,} with prices",
        }
        facts = {**self.understood, **counts}
        width = max(map(len, facts))
        lines = [f"{name:<{width}}  {fact}" for name, fact in facts.items()]
        return "\n".join([*lines, *self.notes, *map(str, group_rejections(self.rejected))])


class TooFewForecasts(ValueError):
    """More than half of the rows are rejected, or no row is left to rank; the message says why."""


def check_rejected(forecasts: int, rows: int, rejected: Sequence[RejectedLine], *, allow_rejected: bool) -> None:
    """Raises TooFewForecasts, with the first reasons, if no forecast is left or most of the rows are rejected."""
    if forecasts and (allow_rejected or 2 * len(rejected) <= rows):
        return
    groups = group_rejections(rejected)[:REASONS_SHOWN]
    reasons = "".join(f"\n  {group}" for group in groups) + "\n--explain shows how the file was understood"
    if not forecasts:
        why = f"{len(rejected)} of {rows} rows are rejected" if rows else "the file has headings and no rows"
        raise TooFewForecasts(f"no forecast can be ranked, {why}{reasons}")
    raise TooFewForecasts(f"{len(rejected)} of {rows} rows are rejected; --allow-rejected ranks the others{reasons}")


def rejections(rejected: Sequence[RejectedLine]) -> dict[str, Any]:
    """The rejected rows as parts of a report."""
    return {
        "rejected": [{"row": line.row, "why": line.why} for line in rejected],
        "rejection_groups": [asdict(group) for group in group_rejections(rejected)],
    }


class InvalidRow(UnreadableFile):
    """The first row that is rejected, with `strict`."""


def read_forecasts(
    source: Any,
    format: str | None = None,
    *,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
    order: Sequence[str] = (),
    columns: NamedHeadings = NOT_NAMED,
    revisions: bool = False,
) -> LoadedForecasts:
    """The forecasts of a file or frame, checked. `forecast_rank.read` describes the parameters.

    Of several forecasts of one forecaster on one question the latest made before the question closed counts. Rejected
    are, a whole (forecaster, question) at a time, or a single earlier or late forecast, which never rejects the one
    that counts:

    * rows with a cell that cannot be read, an empty name, a probability outside [0, 1], odds outside (0, 1), or an
      outcome other than 0 or 1 (outside [0, 1] with `fractional_outcomes`)
    * rows with the forecaster, question, option and time of another row, but for a row that repeats it exactly, which
      counts once
    * where options are exclusive, vectors that do not sum to 1 within 1e-6 (with `normalise`: within 0.02, and are
      divided by their sum), and outcomes of which none or several are 1
    * forecasts with other options or outcomes than most forecasters have on the question; on a tie all of them

    A question of one row is binary, given by the probability of YES. Options have the order of `order`, else
    of an ordered categorical (pandas) or Enum (polars), else of the question's first forecast; forecasters, questions,
    events and categories are sorted by name. A question without an event is an event of its own.
    """
    try:
        check_named(columns)
    except InvalidHeadings as error:
        raise InvalidSetting(str(error)) from error
    if columns and format in PUBLISHED_FORMATS:
        raise InvalidSetting(f"columns: those of the format {format} have their names")
    with ExitStack() as opened:
        files = _paths(source)
        unread: list[RejectedLine] = []
        if isinstance(source, InputTable):
            name, table = source.understood.get("file", FRAME), source
        elif files is None:
            name, table = FRAME, read_table(source, column_headings=columns)
        else:
            name = " ".join(map(str, files))
            plain = [opened.enter_context(plain_file(file)) for file in files]
            if format in PUBLISHED_FORMATS:
                published = read_published(plain, format)
                table, fractional_outcomes = published.table, fractional_outcomes or published.fractional_outcomes
                unread = [RejectedLine(line, why) for line, why in published.unread]
            elif len(files) > 1:
                raise UnreadableFile(f"{name}: several files need --format {'|'.join(PUBLISHED_FORMATS)}")
            else:
                table = read_plain_file(plain[0], format, columns)
        if order:
            _check_order(table, order, name)
            table.option_order = list(order)
        validator = _validated(table, fractional_outcomes, normalise=normalise)
        latest = validator.latest()
        if strict and (validator.faults or unread):
            raise InvalidRow(f"{name}, {_first_fault(validator, unread)}")
        loaded = _loaded(validator, latest)
        if revisions:
            loaded = replace(loaded, revisions=_panel(validator, _versions(validator, latest)))
        rejected = sorted([*loaded.rejected, *unread], key=lambda line: line.row)
        source_name = None if name == FRAME else name
        loaded = replace(loaded, option_order=GIVEN_ORDER) if order else loaded
        return replace(loaded, rejected=rejected, rows=loaded.rows + len(unread), source=source_name)


def _check_order(table: InputTable, order: Sequence[str], source: str) -> None:
    """Raises InvalidSetting if the order names an option twice, or not all that the table has."""
    if twice := sorted({name for name in order if list(order).count(name) > 1}):
        raise InvalidSetting(f"order: names {', '.join(map(repr, twice))} twice")
    options = table.names["option"].drop_nulls().cast(pl.String).unique().sort().to_list()
    if missing := [name for name in options if name and name not in (*order, BINARY)]:
        listed = ", ".join(map(repr, missing[:5]))
        raise InvalidSetting(f"order: does not name {listed}{' and others' * (len(missing) > 5)} of {source}")


def _paths(source: Any) -> list[Path | str] | None:
    """The paths of a source that is one file or several; None for a frame."""
    if isinstance(source, Path | str):
        return [source]
    several = isinstance(source, list | tuple) and source and all(isinstance(item, Path | str) for item in source)
    return list(source) if several else None


def _first_fault(validator: ForecastValidator, unread: list[RejectedLine]) -> str:
    first = min(unread, key=lambda line: line.row, default=None)
    place = min(validator.faults, default=None)
    if place is None or (first and first.row < validator.line[place]):
        return f"row {first.row}: {first.why}" if first else ""
    return f"row {validator.line[place]}: {validator.complete_fault(place).why}"


def read_rows(table: InputTable, *, fractional_outcomes: bool = False) -> LoadedForecasts:
    """The forecasts of a table in memory, checked like those of a file."""
    validator = _validated(table, fractional_outcomes)
    return _loaded(validator, validator.latest())


def usable_rows(table: InputTable, *, fractional_outcomes: bool = False) -> tuple[Mask, list[RejectedLine]]:
    """The rows that `read_rows` accepts now, or would once their questions are resolved, and why it rejects the others.

    Returns
    -------
    usable : array of bool, shape (len(table),)
        Superseded forecasts are usable; so are forecasts on open questions, of which no row states an outcome. A row
        that repeats an earlier one exactly is neither usable nor rejected.
    rejected : list of RejectedLine
    """
    # A copy: the validator removes the names from its table.
    validator = _validated(replace(table, names=dict(table.names)), fractional_outcomes, open_questions=True)
    rejected = _rejected(validator)
    usable = np.ones(len(table), dtype=bool)
    usable[list(validator.faults)] = False
    usable[validator.repeated] = False
    return usable, rejected


def _validated(table: InputTable, fractional_outcomes: bool, **options: bool) -> ForecastValidator:
    validator = ForecastValidator(table, fractional_outcomes, **options)
    validator.check_cells()
    validator.check_duplicates()
    validator.check_vectors()
    validator.check_times()
    validator.check_contradictions()
    return validator


def _loaded(validator: ForecastValidator, latest: Mask) -> LoadedForecasts:
    rejected = _rejected(validator)
    superseded = int(validator.sizes[validator.valid_forecasts() & ~latest].sum())
    table = validator.table
    return LoadedForecasts(
        panel=_panel(validator, latest),
        rejected=rejected,
        rows=len(table),
        superseded=superseded,
        repeated=len(validator.repeated),
        normalised=validator.normalised,
        ignored=table.ignored,
        notes=table.notes,
        understood=table.understood,
        option_order=CATEGORY_ORDER if table.option_order else ROW_ORDER,
    )


def _versions(validator: ForecastValidator, latest: Mask) -> Mask:
    """The forecasts, (F,), that are versions, made in time and with the same options, of those in `latest`."""
    final = np.full(len(validator.sizes), -1)
    final[validator.pair[latest]] = np.flatnonzero(latest)
    candidates = np.flatnonzero(validator.valid_forecasts() & validator.in_time & (final[validator.pair] >= 0))
    model = final[validator.pair[candidates]]
    same_size = validator.sizes[candidates] == validator.sizes[model]
    candidates, model = candidates[same_size], model[same_size]
    option = validator.sorted(validator.option_code)
    sizes = validator.sizes[candidates]
    differs = option[spans(validator.offsets[candidates], sizes)] != option[spans(validator.offsets[model], sizes)]
    versions = np.zeros(len(validator.sizes), dtype=bool)
    versions[candidates] = True
    versions[np.repeat(candidates, sizes)[differs]] = False
    return versions


def _rejected(validator: ForecastValidator) -> list[RejectedLine]:
    validator.complete_faults()
    file_names, rejected = validator.table.file_names, []
    for place, fault in sorted(validator.faults.items()):
        why = f"{file_names[place]}: {fault.why}" if file_names else fault.why
        rejected.append(RejectedLine(int(validator.line[place]), why, fault.kind, fault.cell, fault.fix))
    return rejected


def _panel(validator: ForecastValidator, is_counted: Mask) -> Panel:
    """The panel of the forecasts where `is_counted`, (F,), is true."""
    selected_rows = np.flatnonzero(is_counted)
    sizes, first = validator.sizes[selected_rows], validator.first[selected_rows]
    new_question = changes(validator.question[selected_rows])
    questions, question = validator.question[selected_rows[new_question]], np.cumsum(new_question) - 1
    forecasters = np.flatnonzero(np.bincount(validator.forecaster[selected_rows], minlength=1))
    offsets = offsets_of(sizes)

    # The question's first forecast in the file gives the order of its options, unless the table states one.
    begins = np.flatnonzero(new_question)
    earliest = np.minimum.reduceat(first, begins) if len(begins) else first
    model = np.flatnonzero(first == earliest[question])
    option_offsets = offsets_of(sizes[model])
    option_rows = validator.rows[spans(validator.offsets[selected_rows[model]], sizes[model])]
    ranks = option_rows
    if option_order := validator.table.option_order:
        place = {name: k for k, name in enumerate(option_order)}
        of_code = np.array([place.get(name, len(place)) for name in validator.options])
        ranks = of_code[validator.option_code[option_rows]]
    order = np.lexsort((ranks, np.repeat(np.arange(len(questions)), sizes[model])))
    if len(selected_rows) == len(validator.sizes) and (order[1:] > order[:-1]).all():
        rows = validator.rows
    else:
        moved = order - np.repeat(option_offsets[:-1], sizes[model])
        sources = spans(option_offsets[:-1][question], sizes)
        rows = validator.rows[np.repeat(validator.offsets[selected_rows], sizes) + moved[sources]]
        del sources  # eight bytes a row
    option_rows = option_rows[order]

    starts = offsets[begins]
    event, event_names = _labels(validator, "event", rows, starts)
    category, category_names = _labels(validator, "category", rows, starts)
    names = [validator.questions[j] for j in questions]
    no_event = event < 0
    event[no_event] = len(event_names) + np.arange(no_event.sum())
    event_names += [name for name, alone in zip(names, no_event, strict=True) if alone]
    if (category < 0).any():
        category, category_names = category + 1, ["", *category_names]
    odds, no_odds = validator.odds[rows], validator.no_odds[rows]
    other_side = np.isnan(no_odds)
    no_odds[other_side] = 1 - odds[other_side]
    return Panel(
        questions=Questions(
            offsets=option_offsets,
            outcome=validator.outcome[option_rows],
            exclusive=validator.exclusive[selected_rows[model]],
            event=event,
            category=category,
            closed_at=validator.first_stated(validator.closed_at, rows, starts) if len(starts) else np.zeros(0),
            names=names,
            option_names=[validator.options[k] for k in validator.option_code[option_rows]],
            event_names=event_names,
            category_names=category_names,
        ),
        forecasters=[validator.forecasters[i] for i in forecasters],
        forecaster=np.searchsorted(forecasters, validator.forecaster[selected_rows]),
        question=question,
        offsets=offsets,
        probability=validator.probability[rows],
        odds=odds,
        no_odds=no_odds,
        weight=validator.weight[first],
        made_at=validator.made_at[first],
    )


def _labels(validator: ForecastValidator, column: str, rows: Codes, starts: Codes) -> tuple[Codes, list[str]]:
    """The label of each question, -1 without one, and the labels' names; questions begin at `starts` of `rows`."""
    codes, names = name_codes(validator.table.names[column])
    if not len(starts) or not names:
        return np.full(len(starts), -1, dtype=np.int64), []
    first_codes = validator.first_stated(np.where(codes < 0, np.nan, codes), rows, starts)
    used_codes, places = np.unique(first_codes[~np.isnan(first_codes)].astype(np.int64), return_inverse=True)
    labels = np.full(len(starts), -1, dtype=np.int64)
    labels[~np.isnan(first_codes)] = places
    return labels, [names[k] for k in used_codes]
