"""Checks of forecast rows: cells, duplicates, vectors, and agreement of the forecasters on options and outcomes."""

from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forecast_rank.files.cells import number_fix
from forecast_rank.files.faults import Fault
from forecast_rank.files.input_table import InputTable
from forecast_rank.metrics.flat_arrays import Codes, Floats, spans
from forecast_rank.ranking.row_codes import Mask, changes, name_codes, one_if_missing

SUM_TOLERANCE = 1e-6
LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RATIO = 1e-9, 1e9, 1e6
"""Of a row, and beside the median weight: further apart, sums of squares lose the smaller to rounding."""
NORMALISED_WITHIN = 0.02
"""How far from 1 a sum of probabilities may be that is divided out on request."""
EMPTY, NO_NUMBER = "is empty", "is not a number"
_UNORDERED = ("made_at", "closed_at", None)
"""A fault in these columns, or of the whole row, leaves open which forecast counts."""
ODDS_FIX = "write the price of a contract that pays 1, or leave the cell empty where there was none"
_ROUNDING = 1e-12
_LARGEST_KEY = 2**62
_FORECASTS_AT_ONCE = 100_000
"""Forecasts that are compared at a time, to keep memory small."""


class ForecastValidator:
    """The rows of a table, sorted into forecasts, with the faults found in them.

    The `check_` methods are called in the order in which they stand; each skips forecasts with a fault so far. A fault
    in one row rejects the whole forecast: part of a vector is none. If it is the forecast that counts, it rejects the
    (forecaster, question); one made earlier or too late never rejects the one that counts.

    Attributes
    ----------
    rows : array of int
        Places in the table of all rows with a forecaster and a question, sorted by question, forecaster, time, option.
    offsets : array of int, shape (F + 1,)
        Forecast i has the rows `rows[offsets[i]:offsets[i + 1]]`.
    first : array of int, shape (F,)
        The earliest place of each forecast.
    question, forecaster, pair : arrays of int, shape (F,)
        Codes of each forecast; `pair` numbers the (question, forecaster) pairs in order.
    faults : dict of int to Fault
        Reason by place.
    repeated : array of int
        Places of rows that equal an earlier row in every column; they are not among `rows`.
    unresolved : array of bool, shape (len(table),)
        Rows of questions whose outcome no row states: they are neither counted nor at fault.
    normalised : int
        Forecasts whose probabilities were divided by their sum.
    """

    def __init__(
        self, table: InputTable, fractional_outcomes: bool, *, open_questions: bool = False, normalise: bool = False
    ) -> None:
        self.table, self.faults = table, dict(table.faults)
        self.fractional_outcomes, self.open_questions, self.normalise = fractional_outcomes, open_questions, normalise
        self.normalised = 0
        (
            (self.forecaster_code, self.forecasters),
            (self.question_code, self.questions),
            (self.option_code, self.options),
        ) = (name_codes(table.names.pop(name)) for name in ("forecaster", "question", "option"))
        numbers = table.numbers
        self.probability, self.outcome = numbers["probability"], numbers["outcome"]
        self.odds, self.no_odds, self.quote = numbers["odds"], numbers["no_odds"], numbers["quote"]
        self.weight = one_if_missing(numbers["weight"])
        self.exclusive_flag = one_if_missing(numbers["exclusive"])
        self.made_at, self.closed_at = table.times["made_at"], table.times["closed_at"]
        self.unresolved = self._rows_without_resolution()
        self.rows = self._sorted_rows()
        self._in_order = len(self.rows) == len(table) and bool((self.rows[1:] > self.rows[:-1]).all())
        self.repeated = self._take_out_repeats()
        new_pair = changes(self.sorted(self.question_code)) | changes(self.sorted(self.forecaster_code))
        begins = np.flatnonzero(new_pair)
        if not np.isnan(self.made_at).all():
            made_at = self.sorted(self.made_at)
            begins = np.flatnonzero(
                new_pair | (changes(made_at) & ~(np.isnan(made_at) & np.isnan(np.roll(made_at, 1))))
            )
        self.offsets = np.append(begins, len(self.rows))
        self.sizes = np.diff(self.offsets)
        self.first = np.minimum.reduceat(self.rows, begins) if len(begins) else self.rows
        self.question, self.forecaster = self.question_code[self.first], self.forecaster_code[self.first]
        self.pair = np.cumsum(new_pair[begins]) - 1
        self.exclusive = (self.exclusive_flag[self.first] == 1) & (self.sizes > 1)

    def _rows_without_resolution(self) -> Mask:
        """The rows, none of them at fault, of questions of which every outcome is empty."""
        nothing = np.zeros(len(self.table), dtype=bool)
        empty = np.isnan(self.outcome)
        if self.open_questions or not empty.any():
            return nothing
        for place, fault in self.faults.items():
            if fault.column in ("outcome", None):
                empty[place] = False  # it states something
        known = self.question_code >= 0
        stated = np.bincount(self.question_code[known & ~empty], minlength=len(self.questions)) > 0
        nothing[known] = ~stated[self.question_code[known]]
        nothing[list(self.faults)] = False
        return nothing

    def _sorted_rows(self) -> Codes:
        forecaster, question = self.forecaster_code, self.question_code
        option, made_at = self.option_code, self.made_at
        rows = np.arange(len(forecaster))
        if self.unresolved.any() or min(forecaster.min(initial=0), question.min(initial=0)) < 0:
            rows = np.flatnonzero((forecaster >= 0) & (question >= 0) & ~self.unresolved)
            forecaster, question, option, made_at = forecaster[rows], question[rows], option[rows], made_at[rows]
        forecasters, options = len(self.forecasters) + 1, len(self.options) + 1
        if (len(self.questions) + 1) * forecasters * options < _LARGEST_KEY:
            key = question.astype(np.int64)
            for size, code in ((forecasters, forecaster), (options, option)):
                key *= size
                key += code
            order = None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
        else:
            order = np.lexsort((option, forecaster, question))
        if np.isnan(made_at).all():
            return rows if order is None else rows[order]
        if order is not None:
            rows, forecaster, question = rows[order], forecaster[order], question[order]
            option, made_at = option[order], made_at[order]
        made_at = np.where(np.isnan(made_at), -np.inf, made_at)
        begins = np.flatnonzero(changes(question) | changes(forecaster))
        several = np.maximum.reduceat(made_at, begins) != np.minimum.reduceat(made_at, begins)
        if several.any():
            part = np.flatnonzero(np.repeat(several, np.diff(np.append(begins, len(rows)))))
            rows[part] = rows[part][np.lexsort((option[part], made_at[part], forecaster[part], question[part]))]
        return rows

    def _take_out_repeats(self) -> Codes:
        """Takes those out of `rows` that equal an earlier one in every column, and returns them."""
        is_same = ~(changes(self.sorted(self.question_code)) | changes(self.sorted(self.forecaster_code)))
        is_same &= ~changes(self.sorted(self.option_code))
        if is_same.any():
            is_same &= ~changes(np.nan_to_num(self.sorted(self.made_at), nan=-np.inf))
        if not is_same.any():
            return self.rows[:0]
        suspects = np.flatnonzero(is_same | np.append(is_same[1:], False))
        places = self.rows[suspects]
        columns: dict[str, NDArray] = {
            "question": self.question_code, "forecaster": self.forecaster_code, "option": self.option_code,
            "made_at": self.made_at, "closed_at": self.closed_at, **self.table.numbers,
        }  # fmt: skip
        labels = [self.table.names[name].to_physical()[places].alias(name) for name in ("event", "category")]
        cells = pl.DataFrame({name: column[places] for name, column in columns.items()}).with_columns(labels)
        repeated = suspects[~cells.to_struct().is_first_distinct().to_numpy()]
        repeated_rows = self.rows[repeated]
        self.rows = np.delete(self.rows, repeated)
        self._in_order &= not len(repeated_rows)
        return repeated_rows

    def sorted(self, values: NDArray) -> NDArray:
        """The values of `rows`, in their order."""
        return values if self._in_order else values[self.rows]

    @cached_property
    def comparable_outcome(self) -> Floats:
        """The outcomes with -1 for missing ones, so that two missing outcomes compare equal."""
        missing = np.isnan(self.outcome)
        return np.where(missing, -1.0, self.outcome) if missing.any() else self.outcome

    @cached_property
    def line(self) -> Codes:
        """The line of each place; looked up only when there is a fault."""
        return self.table.lines()

    @cached_property
    def forecast_of_row(self) -> Codes:
        """The forecast that each of `rows` belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def counting(self) -> Mask:
        """The forecast of each pair that counts, (F,): the latest that was made before the question closed."""
        last = np.zeros(len(self.sizes), dtype=bool)
        places = np.flatnonzero(self.in_time)
        last[places[np.append(np.diff(self.pair[places]) != 0, True)[: len(places)]]] = True
        return last

    @cached_property
    def in_time(self) -> Mask:
        """The forecasts that were made before their question closed, or may have been."""
        starts = self.offsets[:-1]
        if not len(starts):
            return np.zeros(0, dtype=bool)
        closed = np.fmax.reduceat(self.sorted(self.closed_at), starts)
        begins = np.flatnonzero(changes(self.question))
        of_question = self.first_stated(self.closed_at, self.rows, starts[begins])
        closed = np.where(np.isnan(closed), np.repeat(of_question, np.diff(np.append(begins, len(closed)))), closed)
        return np.asarray(~(self.made_at[self.first] >= closed))

    def bad_pairs(self) -> Mask:
        """The pairs whose forecast that counts has a fault, or may not be the one that counts, by a time at fault."""
        bad = np.zeros(len(self.sizes), dtype=bool)
        bad[self._forecasts_at(list(self.faults))] = True
        bad &= self.counting
        bad[self._forecasts_at([place for place, fault in self.faults.items() if fault.column in _UNORDERED])] = True
        if not len(bad):
            return bad
        return np.bincount(self.pair, bad, self.pair[-1] + 1) > 0

    def _forecasts_at(self, places: list[int]) -> Codes:
        """The forecasts of these rows, once for each row."""
        at_fault = np.zeros(len(self.table), dtype=bool)
        at_fault[places] = True
        return self.forecast_of_row[self.sorted(at_fault)]

    def valid_forecasts(self) -> Mask:
        """The forecasts, (F,), without a fault, of pairs whose forecast that counts has none."""
        if not self.faults:
            return np.ones(len(self.sizes), dtype=bool)
        valid = ~self.bad_pairs()[self.pair]
        valid[self._forecasts_at(list(self.faults))] = False
        return valid

    def check_cells(self) -> None:
        """Rejects rows by a single cell."""
        for name, codes in (
            ("forecaster", self.forecaster_code),
            ("question", self.question_code),
            ("option", self.option_code),
        ):
            self._reject_rows(codes < 0, name, EMPTY, f"name the {name}")
        p, y, weight, flag = self.probability, self.outcome, self.weight, self.exclusive_flag
        self._reject_rows(np.isnan(p), "probability", NO_NUMBER)
        self._reject_rows((p < 0) | (p > 1), "probability", "is outside [0, 1]")
        if not self.open_questions:
            self._reject_rows(np.isnan(y), "outcome", NO_NUMBER)
        if self.fractional_outcomes:
            self._reject_rows((y < 0) | (y > 1), "outcome", "is outside [0, 1]")
        else:
            fractions = "is neither 0 nor 1; fractions need --fractional-outcomes"
            self._reject_rows((y > 0) & (y < 1), "outcome", fractions)
            self._reject_rows((y != 0) & (y != 1) & ~np.isnan(y), "outcome", "is neither 0 nor 1")
        for name, odds in (("odds", self.odds), ("no_odds", self.no_odds)):
            self._reject_rows((odds <= 0) | (odds >= 1), name, "is outside (0, 1)", ODDS_FIX)
        self._reject_rows((self.quote < 0) | (self.quote > 1), "quote", "is outside [0, 1]")
        self._reject_rows(~((weight > 0) & (weight < np.inf)), "weight", "is not above 0")
        self._check_sizes_of_weights(weight)
        self._reject_rows((flag != 0) & (flag != 1), "exclusive", "is neither 0 nor 1")

    def _check_sizes_of_weights(self, weight: Floats) -> None:
        """Rejects weights beside which all others vanish in rounding, or which vanish beside the others."""
        usual = weight[(weight > 0) & (weight < np.inf)]
        if not len(usual) or (usual.min() == usual.max() and LEAST_WEIGHT <= usual[0] <= MOST_WEIGHT):
            return
        middle = float(np.median(usual))
        low, high = LEAST_WEIGHT, MOST_WEIGHT
        if low <= middle <= high:
            low, high = max(low, middle / WEIGHT_RATIO), min(high, middle * WEIGHT_RATIO)
        problem = f"is not from {low:g} to {high:g}: the median weight is {middle:g}"
        self._reject_rows((weight > 0) & ((weight < low) | (weight > high)), "weight", problem)

    def check_duplicates(self) -> None:
        """Rejects rows with the forecaster, question, option and time of an earlier row."""
        repeats = ~changes(self.sorted(self.option_code))
        repeats[self.offsets[:-1]] = False
        earlier_rows = np.flatnonzero(repeats) - 1
        for earlier, place in zip(self.rows[earlier_rows].tolist(), self.rows[earlier_rows + 1].tolist(), strict=True):
            self.faults.setdefault(
                place,
                Fault(
                    f"repeats row {self.line[earlier]} with another value",
                    self._differing_column(earlier, place),
                    fix="keep one of the rows, or tell them apart by made_at",
                    group="repeats an earlier row with other values",
                ),
            )

    def _differing_column(self, place: int, second_place: int) -> str:
        """The first column in which two rows of one forecaster, question, option and time differ."""
        columns = self.table.numbers | {"closed_at": self.closed_at}
        pairs = ((name, float(values[place]), float(values[second_place])) for name, values in columns.items())
        differing = (name for name, a, b in pairs if a != b and not (np.isnan(a) and np.isnan(b)))
        labels = (
            name
            for name in ("event", "category")
            if self.table.names[name][place] != self.table.names[name][second_place]
        )
        return next(chain(differing, labels), "probability")

    def check_vectors(self) -> None:
        """Rejects forecasts whose rows contradict each other, or whose exclusive options do not sum to 1."""
        valid, starts = self.valid_forecasts(), self.offsets[:-1]
        if not len(starts):
            return
        unknown = self.sorted(np.isnan(self.outcome))
        partly = np.logical_or.reduceat(unknown, starts) & ~np.logical_and.reduceat(unknown, starts)
        missing = Fault("the outcome of some options is missing", fix="fill it in for all options or for none")
        self._reject_forecasts(valid & partly, missing)
        for name, values in (("exclusive", self.exclusive_flag), ("weight", self.weight)):
            if (values != 1).any():
                ordered = self.sorted(values)
                varies = np.maximum.reduceat(ordered, starts) != np.minimum.reduceat(ordered, starts)
                differs = Fault("differs between the options", name, fix="write the same for all options of a forecast")
                self._reject_forecasts(valid & varies, differs)
        valid &= self.exclusive
        total = np.add.reduceat(self.sorted(self.probability), starts)
        off = valid & (np.abs(total - 1) > SUM_TOLERANCE + _ROUNDING)
        slightly = off & (np.abs(total - 1) <= NORMALISED_WITHIN + _ROUNDING)
        if self.normalise and slightly.any():
            divisor = np.ones(len(self.table))
            divisor[self.rows] = np.repeat(np.where(slightly, total, 1.0), self.sizes)
            self.probability, self.normalised = self.probability / divisor, int(slightly.sum())
            off &= ~slightly
        why = "belongs to exclusive options that sum to {:.9g}, not 1"
        divisible = Fault(
            f"{why}; --normalise divides them by it",
            "probability",
            fix="--normalise divides them by their sum",
            group="the probabilities of exclusive options sum to almost 1",
        )
        self._reject_forecasts(slightly & off, divisible, total)
        indivisible = Fault(
            why,
            "probability",
            fix="name all options, or set exclusive to 0 where several can happen",
            group="the probabilities of exclusive options do not sum to 1",
        )
        self._reject_forecasts(off, indivisible, total)
        happened = np.add.reduceat(self.sorted(self.outcome), starts)
        off = valid & (np.abs(happened - 1) > SUM_TOLERANCE + _ROUNDING)
        if self.fractional_outcomes:
            group = "the outcomes of exclusive options do not sum to 1"
            unequal = Fault("belongs to exclusive options whose outcomes sum to {:.9g}, not 1", "outcome", group=group)
            self._reject_forecasts(off, unequal, happened)
        else:
            fix = "write outcome 1 for one option, or set exclusive to 0"
            no_outcome = "none of the exclusive options happened"
            unanswered = Fault(
                "belongs to exclusive options of which none happened", "outcome", fix=fix, group=no_outcome
            )
            self._reject_forecasts(off & (happened == 0), unanswered)
            group = "several of the exclusive options happened"
            several = Fault("belongs to exclusive options of which {:.0f} happened", "outcome", fix=fix, group=group)
            self._reject_forecasts(off, several, happened)

    def check_times(self) -> None:
        """Rejects forecasts of pairs without one that was made before the question closed."""
        if not len(self.sizes):
            return
        pair_in_time = np.bincount(self.pair, self.in_time, self.pair[-1] + 1) > 0
        late = Fault("is not before closed_at", "made_at", fix="leave out forecasts made after the question closed")
        self._reject_forecasts(self.valid_forecasts() & ~pair_in_time[self.pair], late)

    def check_contradictions(self) -> None:
        """Rejects forecasts that count with other options, outcomes or `exclusive` than most have on the question."""
        valid = np.flatnonzero(self.valid_forecasts() & self.counting)
        if not len(valid):
            return
        question, sizes = self.question[valid], self.sizes[valid]
        begins = np.flatnonzero(changes(question))
        model = np.repeat(valid[begins], np.diff(np.append(begins, len(valid))))
        alike = (sizes == self.sizes[model]) & (self.exclusive[valid] == self.exclusive[model])
        compared, model = valid[alike], model[alike]
        option, outcome = self.sorted(self.option_code), self.sorted(self.comparable_outcome)
        differing = [valid[:0]]
        for first in range(0, len(compared), _FORECASTS_AT_ONCE):
            block, model_block = (places[first : first + _FORECASTS_AT_ONCE] for places in (compared, model))
            sizes = self.sizes[block]
            cells, model_cells = spans(self.offsets[block], sizes), spans(self.offsets[model_block], sizes)
            differs = (option[cells] != option[model_cells]) | (outcome[cells] != outcome[model_cells])
            differing.append(np.repeat(block, sizes)[differs])
        if len(contradicting := np.concatenate(differing)):
            alike &= ~np.isin(valid, contradicting)
        elif alike.all():
            return
        contested = np.isin(question, question[~alike])
        by_question: dict[int, list[int]] = {}
        for i in valid[contested].tolist():
            by_question.setdefault(int(self.question[i]), []).append(i)
        for forecasts in by_question.values():
            self._reject_minority(forecasts)

    def _reject_minority(self, forecasts: list[int]) -> None:
        """Rejects forecasts with other options or outcomes than most forecasters have; on a tie all of the question."""
        versions: dict[tuple, list[int]] = {}
        for i in forecasts:
            rows = self.rows[self.offsets[i] : self.offsets[i + 1]]
            options, outcomes = self.option_code[rows].tolist(), self.comparable_outcome[rows].tolist()
            versions.setdefault((tuple(options), tuple(outcomes), bool(self.exclusive[i])), []).append(i)
        most = max(map(len, versions.values()))
        leading = [version for version, supporters in versions.items() if len(supporters) == most]
        for version, supporters in versions.items():
            rival = next((leader for leader in leading if leader != version), None)
            if rival is None:
                continue
            example = int(self.line[self.first[versions[rival]].min()])
            part = next(k for k in range(3) if version[k] != rival[k])
            bad = np.isin(self.pair, self.pair[supporters])
            name = ("option", "outcome", "exclusive")[part]
            why = "contradicts the question's other forecasts"
            if len(leading) > 1:
                why += ", which are as many"
            fix = f"write the same {name}{'s' * (part < 2)} for all forecasters of a question"
            self._reject_forecasts(bad, Fault(f"{why} (see row {example})", name, fix=fix, group=f"{name} {why}"))

    def latest(self) -> Mask:
        """The forecasts that count and are valid, (F,)."""
        return self.valid_forecasts() & self.counting

    def first_stated(self, values: Floats, rows: Codes, starts: Codes) -> Floats:
        """The value in the earliest row of each group that has one, else NaN; groups begin at `starts` of `rows`."""
        never, missing = len(self.table), np.isnan(values)
        places = np.minimum.reduceat(np.where(missing[rows], never, rows) if missing.any() else rows, starts)
        first_values = np.full(len(places), np.nan)
        first_values[places < never] = values[places[places < never]]
        return first_values

    def complete_faults(self) -> None:
        """Adds to the faults the cells as written, and a fault for every other row that is rejected with them."""
        if not self.faults:
            return
        for place in self.faults:
            self.faults[place] = self.complete_fault(place)
        bad_pair = self.bad_pairs()
        suspects = np.flatnonzero(~self.valid_forecasts()[self.forecast_of_row])
        forecast = self.forecast_of_row[suspects]
        # A fault of the forecast that counts concerns all forecasts of its pair.
        group = np.where(bad_pair[self.pair[forecast]], len(self.sizes) + self.pair[forecast], forecast)
        groups, places = group.tolist(), self.rows[suspects].tolist()
        weighty = (self.counting[forecast] | ~bad_pair[self.pair[forecast]]).tolist()
        cause: dict[int, tuple[bool, int]] = {}
        for key, place, counts in zip(groups, places, weighty, strict=True):
            if place in self.faults:
                cause[key] = min(cause.get(key, (True, place)), (not counts, place))
        for key, place in zip(groups, places, strict=True):
            if place not in self.faults:
                _, other_place = cause[key]
                earlier_fault = self.faults[other_place]
                why = f"rejected with row {self.line[other_place]}: {earlier_fault.why}"
                self.faults[place] = Fault(
                    why, fix=earlier_fault.fix, group=f"rejected with another row: {earlier_fault.kind}"
                )

    def complete_fault(self, place: int) -> Fault:
        """The fault of a row with its cell as written."""
        fault = self.faults[place]
        if fault.column is None or fault.cell is not None or fault.problem == EMPTY:
            return fault
        if self.table.written is not None:
            column, cell = self.table.written(place, fault.column)
        else:
            column, values = fault.column, self.table.numbers.get(fault.column)
            cell = None if values is None or np.isnan(values[place]) else str(float(values[place]))
        if cell is None:
            return replace(fault, column=column, problem=EMPTY if fault.problem == NO_NUMBER else fault.problem)
        return replace(fault, column=column, cell=repr(cell) if fault.problem == NO_NUMBER else cell)

    def _reject_rows(self, bad: Mask, column: str, problem: str, fix: str = "") -> None:
        """Adds a fault of the column's cell to the rows where `bad`."""
        bad = bad & ~self.unresolved
        if bad.any():
            fault = Fault(problem, column, fix=fix or number_fix(column))
            for place in np.flatnonzero(bad).tolist():
                self.faults.setdefault(place, fault)

    def _reject_forecasts(self, bad: Mask, fault: Fault, values: NDArray | None = None) -> None:
        """Adds a fault to every row of the forecasts where `bad`; `{}` stands for the forecast's value."""
        for i in np.flatnonzero(bad).tolist():
            full_fault = fault if values is None else replace(fault, problem=fault.problem.format(values[i]))
            for place in self.rows[self.offsets[i] : self.offsets[i + 1]].tolist():
                self.faults.setdefault(place, full_fault)
