"""Forecasts of a CSV, Parquet or JSONL file as a panel, with every row that can not be used named by line and reason.

A row is one forecaster's probability of one option of one question. Rows are refused a whole (forecaster, question) at
a time: half a vector is no forecast, and an older one is not what was meant.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from scoring.metrics.panel import Codes, Floats, Panel, Questions
from scoring.ranking.files import Table, UnreadableFile, read_table

SUM_TOLERANCE = 1e-6
_ROUNDING = 1e-12
_LARGEST_KEY = 2**62

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that does not count: its line in the file (its row in Parquet, from 1) and why."""

    row: int
    why: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file said.

    rows : rows in the file
    rejected : those that can not be used, in the order of the file
    superseded : rows of good forecasts that another by the same forecaster on the same question stands for
    ignored : columns that mean nothing here
    """

    panel: Panel
    rejected: list[Rejected]
    rows: int
    superseded: int
    ignored: list[str]


class BadRow(UnreadableFile):
    """The first row that can not be used, where none may be."""


def read(
    path: Path | str, format: str | None = None, *, strict: bool = False, fractional_outcomes: bool = False
) -> Reading:
    """The forecasts of a file, checked; `format` is csv, parquet or jsonl, by default that of the suffix.

    Rejected are rows with a probability outside [0, 1], odds outside (0, 1), an outcome other than 0 or 1 (outside
    [0, 1] with `fractional_outcomes`), an unreadable cell, an empty name; duplicates; vectors that do not sum to 1
    within 1e-6, or of which none or several came true, where options are exclusive; forecasts whose options or outcomes
    contradict those that most forecasters have of the question (the first in the file, where as many say either).

    Of several forecasts of one forecaster on one question the latest made before the question closed counts. A question
    of one row is a two-way question, given by the probability of its YES. Options keep the order of the question's
    first forecast; forecasters, questions, events and categories are sorted by name. A question without an event is an
    event of its own.

    Raises UnreadableFile where the file as a whole can not be used, BadRow (with `strict`) for the first bad row.
    """
    check = _checked(read_table(Path(path), format), fractional_outcomes)
    kept = check.latest()
    if strict and check.faults:
        place = min(check.faults)
        raise BadRow(f"{path}, row {check.line[place]}: {check.faults[place]}")
    return _reading(check, kept)


def read_rows(table: Table, *, fractional_outcomes: bool = False) -> Reading:
    """The forecasts of rows that are at hand, checked as `read` checks those of a file."""
    check = _checked(table, fractional_outcomes)
    return _reading(check, check.latest())


def usable(table: Table, *, fractional_outcomes: bool = False) -> tuple[Mask, list[Rejected]]:
    """Which of the rows, (len(table),), `read` would take, now or once they are resolved, and why not the others.

    A question of which no outcome is stated is open, which is no fault. Superseded forecasts are among those taken.
    """
    # A check uses up the names, and these are the caller's.
    check = _checked(replace(table, names=dict(table.names)), fractional_outcomes, open_questions=True)
    check.latest()
    rejected = check.rejected()
    good = np.ones(len(table), dtype=bool)
    good[list(check.faults)] = False
    return good, rejected


def _checked(table: Table, fractional_outcomes: bool, *, open_questions: bool = False) -> "_Check":
    check = _Check(table, fractional_outcomes, open_questions)
    check.cells()
    check.duplicates()
    check.vectors()
    check.contradictions()
    return check


def _reading(check: "_Check", kept: Mask) -> Reading:
    rejected = check.rejected()
    superseded = int(check.sizes[check.good() & ~kept].sum())
    return Reading(_panel(check, kept), rejected, len(check.table), superseded, check.table.ignored)


def _codes(names: pl.Series) -> tuple[Codes, list[str]]:
    """Codes of a Categorical column in the order of the sorted names, -1 where it is empty; the names."""
    kinds = names.unique().drop_nulls()
    texts = kinds.cast(pl.String)
    kinds = kinds.gather(texts.arg_sort()).filter(texts.sort() != "")
    of_physical = np.full(int(names.to_physical().max() or 0) + 1, -1, np.int64)  # type: ignore[arg-type]
    of_physical[kinds.to_physical().to_numpy()] = np.arange(len(kinds))
    codes = of_physical[names.to_physical().fill_null(0).to_numpy()]
    if names.null_count():
        codes[names.is_null().to_numpy()] = -1
    return codes, kinds.cast(pl.String).to_list()


class _Check:
    """The rows of a file under examination: sorted into forecasts, with what is wrong with them.

    rows : places in the file of all rows with a forecaster and a question, by question, forecaster, time and option
    offsets : forecast i holds rows[offsets[i]:offsets[i + 1]]
    first : the earliest place of each forecast
    question, forecaster, pair : codes of each forecast; `pair` numbers the (question, forecaster)s in order
    """

    def __init__(self, table: Table, fractional: bool, open_questions: bool) -> None:
        self.table, self.fractional, self.faults = table, fractional, dict(table.faults)
        self.open_questions = open_questions
        (self.who, self.forecasters), (self.what, self.questions), (self.which, self.options) = (
            _codes(table.names.pop(name)) for name in ("forecaster", "question", "option")
        )
        numbers = table.numbers
        self.probability, self.outcome = numbers["probability"], numbers["outcome"]
        self.odds, self.no_odds = numbers["odds"], numbers["no_odds"]
        self.weight = np.nan_to_num(numbers["weight"], nan=1.0, posinf=np.inf, neginf=-np.inf)
        self.flag = np.nan_to_num(numbers["exclusive"], nan=1.0)
        self.made_at, self.closed_at = table.times["made_at"], table.times["closed_at"]
        self.rows = self._sorted()
        self.in_order = len(self.rows) == len(table) and bool((np.diff(self.rows) == 1).all())
        other_pair = _changes(self.sorted(self.what)) | _changes(self.sorted(self.who))
        begins = np.flatnonzero(other_pair)
        if not np.isnan(self.made_at).all():
            made = self.sorted(self.made_at)
            begins = np.flatnonzero(other_pair | (_changes(made) & ~(np.isnan(made) & np.isnan(np.roll(made, 1)))))
        self.offsets = np.append(begins, len(self.rows))
        self.sizes = np.diff(self.offsets)
        self.first = np.minimum.reduceat(self.rows, begins) if len(begins) else self.rows
        self.question, self.forecaster = self.what[self.first], self.who[self.first]
        self.pair = np.cumsum(other_pair[begins]) - 1
        self.exclusive = (self.flag[self.first] == 1) & (self.sizes > 1)

    def _sorted(self) -> Codes:
        who, what, which, made = self.who, self.what, self.which, self.made_at
        rows = np.arange(len(who))
        if min(who.min(initial=0), what.min(initial=0)) < 0:
            rows = np.flatnonzero((who >= 0) & (what >= 0))
            who, what, which, made = who[rows], what[rows], which[rows], made[rows]
        people, kinds = len(self.forecasters) + 1, len(self.options) + 1
        if (len(self.questions) + 1) * people * kinds < _LARGEST_KEY:
            key = (what * people + who) * kinds + which
            order = None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
        else:
            order = np.lexsort((which, who, what))
        if order is not None:
            rows, who, what, which, made = rows[order], who[order], what[order], which[order], made[order]
        if np.isnan(made).all():
            return rows
        made = np.where(np.isnan(made), -np.inf, made)
        begins = np.flatnonzero(_changes(what) | _changes(who))
        several = np.maximum.reduceat(made, begins) != np.minimum.reduceat(made, begins)
        if several.any():
            part = np.flatnonzero(np.repeat(several, np.diff(np.append(begins, len(rows)))))
            rows[part] = rows[part][np.lexsort((which[part], made[part], who[part], what[part]))]
        return rows

    def sorted(self, values: NDArray) -> NDArray:
        """The values of `rows`, in their order."""
        return values if self.in_order else values[self.rows]

    @cached_property
    def told(self) -> Floats:
        """The outcomes, with one number for those that are open, so that two of them compare equal."""
        return np.nan_to_num(self.outcome, nan=-1.0)

    @cached_property
    def line(self) -> Codes:
        """The line of each place, looked up for the first fault."""
        return self.table.lines()

    @cached_property
    def of_row(self) -> Codes:
        """The forecast that each of `rows` belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def refuse(self, bad: Mask, why: str, values: NDArray | None = None) -> None:
        """Finds fault with the rows where `bad`; `{}` in the reason stands for the row's value."""
        for place in np.flatnonzero(bad).tolist():
            if place not in self.faults:
                self.faults[place] = why if values is None else why.format(values[place])

    def good(self) -> Mask:
        """The forecasts, (F,), of pairs in which no row is at fault."""
        if not self.faults:
            return np.ones(len(self.sizes), dtype=bool)
        at_fault = np.zeros(len(self.table), dtype=bool)
        at_fault[list(self.faults)] = True
        bad = np.bincount(self.pair[self.of_row], self.sorted(at_fault), 1) > 0
        return ~bad[self.pair]

    def refuse_forecasts(self, bad: Mask, why: str, values: NDArray | None = None) -> None:
        """Finds fault with every row of the forecasts where `bad`; `{}` stands for the forecast's value."""
        for i in np.flatnonzero(bad).tolist():
            reason = why if values is None else why.format(values[i])
            for place in self.rows[self.offsets[i] : self.offsets[i + 1]].tolist():
                self.faults.setdefault(place, reason)

    def cells(self) -> None:
        """Refuses rows by what they say alone."""
        for name, codes in (("forecaster", self.who), ("question", self.what), ("option", self.which)):
            self.refuse(codes < 0, f"{name} is empty")
        p, y, weight, flag = self.probability, self.outcome, self.weight, self.flag
        self.refuse(np.isnan(p), "probability is empty or not a number")
        self.refuse((p < 0) | (p > 1), "probability {} is outside [0, 1]", p)
        if not self.open_questions:
            self.refuse(np.isnan(y), "outcome is empty or not a number")
        if self.fractional:
            self.refuse((y < 0) | (y > 1), "outcome {} is outside [0, 1]", y)
        else:
            self.refuse((y > 0) & (y < 1), "outcome {} is neither 0 nor 1; fractions need --fractional-outcomes", y)
            self.refuse((y != 0) & (y != 1) & ~np.isnan(y), "outcome {} is neither 0 nor 1", y)
        for name, odds in (("odds", self.odds), ("no_odds", self.no_odds)):
            self.refuse((odds <= 0) | (odds >= 1), name + " {} is outside (0, 1)", odds)
        self.refuse(~((weight > 0) & (weight < np.inf)), "weight {} is not above 0", weight)
        self.refuse((flag != 0) & (flag != 1), "exclusive {} is neither 0 nor 1", flag)

    def duplicates(self) -> None:
        """Refuses rows that repeat another: the same forecaster, question, option and time."""
        same = np.flatnonzero((np.diff(self.sorted(self.which)) == 0) & (np.diff(self.of_row) == 0))
        for earlier, place in zip(self.rows[same].tolist(), self.rows[same + 1].tolist(), strict=True):
            self.faults.setdefault(place, f"repeats row {self.line[earlier]}")

    def vectors(self) -> None:
        """Refuses forecasts that do not hang together."""
        good, starts = self.good(), self.offsets[:-1]
        if not len(starts):
            return
        unknown = self.sorted(np.isnan(self.outcome))
        partly = np.logical_or.reduceat(unknown, starts) & ~np.logical_and.reduceat(unknown, starts)
        self.refuse_forecasts(good & partly, "the outcome of some options is missing")
        for name, values in (("exclusive", self.flag), ("weight", self.weight)):
            if (values != 1).any():
                here = self.sorted(values)
                varies = np.maximum.reduceat(here, starts) != np.minimum.reduceat(here, starts)
                self.refuse_forecasts(good & varies, f"{name} differs between the options")
        good &= self.exclusive
        total = np.add.reduceat(self.sorted(self.probability), starts)
        off = good & (np.abs(total - 1) > SUM_TOLERANCE + _ROUNDING)
        self.refuse_forecasts(off, "the probabilities of exclusive options sum to {:.9g}, not 1", total)
        happened = np.add.reduceat(self.sorted(self.outcome), starts)
        off = good & (np.abs(happened - 1) > SUM_TOLERANCE + _ROUNDING)
        if self.fractional:
            self.refuse_forecasts(off, "the outcomes of exclusive options sum to {:.9g}, not 1", happened)
        else:
            self.refuse_forecasts(off & (happened == 0), "none of the exclusive options happened")
            self.refuse_forecasts(off, "{:.0f} of the exclusive options happened", happened)

    def contradictions(self) -> None:
        """Refuses forecasts with other options, outcomes or exclusiveness than most forecasters' on the question."""
        good = np.flatnonzero(self.good())
        if not len(good):
            return
        question, sizes = self.question[good], self.sizes[good]
        begins = np.flatnonzero(_changes(question))
        model = np.repeat(good[begins], np.diff(np.append(begins, len(good))))
        alike = (sizes == self.sizes[model]) & (self.exclusive[good] == self.exclusive[model])
        compared = good[alike]
        which, outcome = self.sorted(self.which), self.sorted(self.told)
        here = _spans(self.offsets[compared], self.sizes[compared])
        there = here + np.repeat(self.offsets[model[alike]] - self.offsets[compared], self.sizes[compared])
        if len(here) < len(which):
            which_here, outcome_here = which[here], outcome[here]
        else:
            which_here, outcome_here = which, outcome
        differs = (which_here != which[there]) | (outcome_here != outcome[there])
        if differs.any():
            alike &= ~np.isin(good, self.of_row[here[differs]])
        elif alike.all():
            return
        contested = np.isin(question, question[~alike])
        asked: dict[int, list[int]] = {}
        for i in good[contested].tolist():
            asked.setdefault(int(self.question[i]), []).append(i)
        for forecasts in asked.values():
            self._settle(forecasts)

    def _settle(self, forecasts: list[int]) -> None:
        """Refuses those of a question's forecasts that do not describe it as most forecasters do."""
        versions: dict[tuple, list[int]] = {}
        for i in forecasts:
            rows = self.rows[self.offsets[i] : self.offsets[i + 1]]
            key = (tuple(self.which[rows].tolist()), tuple(self.told[rows].tolist()), bool(self.exclusive[i]))
            versions.setdefault(key, []).append(i)

        def standing(version: tuple) -> tuple[int, int]:
            said = versions[version]
            return len({int(self.pair[i]) for i in said}), -int(self.first[said].min())

        right = max(versions, key=standing)
        witness = int(self.line[self.first[versions[right]].min()])
        for version, said in versions.items():
            if version != right:
                part = next(k for k in range(3) if version[k] != right[k])
                bad = np.zeros(len(self.sizes), dtype=bool)
                bad[said] = True
                what = ("options", "outcomes", "exclusive")[part]
                self.refuse_forecasts(bad, f"{what} contradict the question's other forecasts (see row {witness})")

    def latest(self) -> Mask:
        """The forecasts that count, (F,): of each good pair the latest that was made before the question closed."""
        good, starts = self.good(), self.offsets[:-1]
        if not len(starts):
            return good
        made = self.made_at[self.first]
        closed = np.fmax.reduceat(self.sorted(self.closed_at), starts)
        begins = np.flatnonzero(_changes(self.question))
        of_question = self.first_stated(self.closed_at, self.rows, starts[begins])
        closed = np.where(np.isnan(closed), np.repeat(of_question, np.diff(np.append(begins, len(closed)))), closed)
        counts = good & ~(made >= closed)
        in_time = np.bincount(self.pair, counts, self.pair[-1] + 1) > 0
        self.refuse_forecasts(good & ~in_time[self.pair], "made_at is not before closed_at")
        places = np.flatnonzero(counts)
        last = np.zeros(len(good), dtype=bool)
        last[places[np.append(np.diff(self.pair[places]) != 0, True)[: len(places)]]] = True
        return last

    def first_stated(self, values: Floats, rows: Codes, starts: Codes) -> Floats:
        """The value that the earliest of each group's rows states, NaN where none does; groups begin at `starts`."""
        never = len(self.table)
        places = np.minimum.reduceat(np.where(np.isnan(values[rows]), never, rows), starts)
        return np.append(values, np.nan)[places]

    def rejected(self) -> list[Rejected]:
        """Every row that does not count for a fault of its own, its forecast's or its pair's, in the file's order."""
        if not self.faults:
            return []
        cause: dict[int, int] = {}
        pair_of_row = self.pair[self.of_row]
        suspects = np.flatnonzero(~self.good()[self.of_row])
        for pair, place in zip(pair_of_row[suspects].tolist(), self.rows[suspects].tolist(), strict=True):
            if place in self.faults:
                cause[pair] = min(cause.get(pair, place), place)
        for pair, place in zip(pair_of_row[suspects].tolist(), self.rows[suspects].tolist(), strict=True):
            if place not in self.faults:
                other = cause[pair]
                self.faults[place] = f"rejected with row {self.line[other]}: {self.faults[other]}"
        return [Rejected(int(self.line[place]), why) for place, why in sorted(self.faults.items())]


def _panel(check: _Check, kept: Mask) -> Panel:
    """The panel of the forecasts where `kept`, (F,)."""
    chosen = np.flatnonzero(kept)
    sizes, first = check.sizes[chosen], check.first[chosen]
    leads = _changes(check.question[chosen])
    asked, question = check.question[chosen[leads]], np.cumsum(leads) - 1
    heard = np.flatnonzero(np.bincount(check.forecaster[chosen], minlength=1))
    offsets = _offsets(sizes)

    # The question's first forecast in the file gives the order of its options.
    begins = np.flatnonzero(leads)
    earliest = np.minimum.reduceat(first, begins) if len(begins) else first
    model = np.flatnonzero(first == earliest[question])
    option_offsets = _offsets(sizes[model])
    option_rows = check.rows[_spans(check.offsets[chosen[model]], sizes[model])]
    order = np.lexsort((option_rows, np.repeat(np.arange(len(asked)), sizes[model])))
    moved = order - np.repeat(option_offsets[:-1], sizes[model])

    sources = _spans(option_offsets[:-1][question], sizes)
    rows = check.rows[np.repeat(check.offsets[chosen], sizes) + moved[sources]]
    option_rows = option_rows[order]

    starts = offsets[begins]
    event, event_names = _labels(check, "event", rows, starts)
    category, category_names = _labels(check, "category", rows, starts)
    names = [check.questions[j] for j in asked]
    alone = event < 0
    event[alone] = len(event_names) + np.arange(alone.sum())
    event_names += [name for name, own in zip(names, alone, strict=True) if own]
    if (category < 0).any():
        category, category_names = category + 1, ["", *category_names]
    odds, no_odds = check.odds[rows], check.no_odds[rows]
    return Panel(
        questions=Questions(
            offsets=option_offsets,
            outcome=check.outcome[option_rows],
            exclusive=check.exclusive[chosen[model]],
            event=event,
            category=category,
            closed_at=check.first_stated(check.closed_at, rows, starts) if len(starts) else np.zeros(0),
            names=names,
            option_names=[check.options[k] for k in check.which[option_rows]],
            event_names=event_names,
            category_names=category_names,
        ),
        forecasters=[check.forecasters[i] for i in heard],
        forecaster=np.searchsorted(heard, check.forecaster[chosen]),
        question=question,
        offsets=offsets,
        probability=check.probability[rows],
        odds=odds,
        no_odds=np.where(np.isnan(no_odds), 1 - odds, no_odds),
        weight=check.weight[first],
        made_at=check.made_at[first],
    )


def _labels(check: _Check, name: str, rows: Codes, starts: Codes) -> tuple[Codes, list[str]]:
    """The label of each question, -1 where it has none, and the labels' names; questions begin at `starts` of rows."""
    codes, names = _codes(check.table.names[name])
    if not len(starts) or not names:
        return np.full(len(starts), -1, dtype=np.int64), []
    stated = check.first_stated(np.where(codes < 0, np.nan, codes), rows, starts)
    used, places = np.unique(stated[~np.isnan(stated)].astype(np.int64), return_inverse=True)
    out = np.full(len(starts), -1, dtype=np.int64)
    out[~np.isnan(stated)] = places
    return out, [names[k] for k in used]


def _changes(values: NDArray) -> Mask:
    """True where a value differs from the one before; the first always does."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def _spans(starts: Codes, sizes: Codes) -> Codes:
    """start, start + 1, … of every span, one after another."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)


def _offsets(sizes: Codes) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
