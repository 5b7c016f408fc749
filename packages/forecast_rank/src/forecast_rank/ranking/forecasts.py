"""Forecasts of a file or frame as a panel, with the line and the reason of every row that is rejected."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from forecast_rank.metrics.panel import Panel
from forecast_rank.ranking.panel_building import build_panel
from forecast_rank.ranking.rejections import InvalidRow, RejectedLine, group_rejections
from forecast_rank.ranking.row_codes import Mask
from forecast_rank.ranking.settings import InvalidSetting
from forecast_rank.ranking.validation import ForecastValidator
from forecast_rank.readers.formats import PUBLISHED_FORMATS, read_published

SIMILAR_SHOWN = 5
ROW_ORDER = "the rows of the question's first forecast"
CATEGORY_ORDER, GIVEN_ORDER = "the categories of the column 'option'", "the setting 'order'"


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
    unresolved : int
        Rows of questions without an outcome, which are neither counted nor rejected.
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
    """

    panel: Panel
    rejected: list[RejectedLine]
    rows: int
    superseded: int
    repeated: int
    unresolved: int
    normalised: int
    ignored: list[str]
    notes: list[str]
    understood: dict[str, str]
    source: str | None = None
    option_order: str = ROW_ORDER

    def explanation(self) -> str:
        """How the file was understood, what counts and what does not, in a few lines."""
        panel = self.panel
        counts = {
            "rows": f"{self.rows:,}, of which {len(self.rejected):,} are rejected, {self.superseded:,} superseded, "
            f"{self.repeated:,} repeated and {self.unresolved:,} of questions without a resolution",
            "forecasts": f"{len(panel):,} by {len(panel.forecasters):,} forecasters on {len(panel.questions):,} "
            f"questions, {int(panel.priced.sum()):,} with prices",
        }
        facts = {**self.understood, **counts}
        width = max(map(len, facts))
        lines = [f"{name:<{width}}  {fact}" for name, fact in facts.items()]
        return "\n".join([*lines, *self.notes, *map(str, group_rejections(self.rejected))])


def read_forecasts(
    source: Any,
    format: str | None = None,
    *,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
    order: Sequence[str] = (),
    columns: NamedHeadings = NOT_NAMED,
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
    panel = build_panel(validator, latest)
    return LoadedForecasts(
        panel=panel,
        rejected=rejected,
        rows=len(table),
        superseded=superseded,
        repeated=len(validator.repeated),
        unresolved=int(validator.unresolved.sum()),
        normalised=validator.normalised,
        ignored=table.ignored,
        notes=[*table.notes, *similar_name_warnings(panel.forecasters)],
        understood=table.understood,
        option_order=CATEGORY_ORDER if table.option_order else ROW_ORDER,
    )


def similar_name_warnings(names: Sequence[str]) -> list[str]:
    """A warning for each group of forecasters whose names differ by case, spaces or punctuation alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        if letters := "".join(filter(str.isalnum, name.casefold())):
            groups.setdefault(letters, []).append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    warnings = []
    for group in alike[:SIMILAR_SHOWN]:
        quoted = " and ".join(repr(name[:80]) for name in group[:SIMILAR_SHOWN])
        warnings.append(f"Warning: {quoted} count as different forecasters; their names differ by punctuation alone")
    if len(alike) > SIMILAR_SHOWN:
        warnings.append(f"Warning: {len(alike) - SIMILAR_SHOWN} more groups of names differ by punctuation alone")
    return warnings


def _rejected(validator: ForecastValidator) -> list[RejectedLine]:
    validator.complete_faults()
    file_names, rejected = validator.table.file_names, []
    for place, fault in sorted(validator.faults.items()):
        why = f"{file_names[place]}: {fault.why}" if file_names else fault.why
        rejected.append(RejectedLine(int(validator.line[place]), why, fault.kind, fault.cell, fault.fix))
    return rejected
