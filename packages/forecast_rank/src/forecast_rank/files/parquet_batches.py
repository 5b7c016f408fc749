"""Rows of a Parquet file in batches, none of which cuts the rows of a forecaster on a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import BYTES_PER_CELL
from forecast_rank.files.headings import Headings, understand_headings
from forecast_rank.files.limits import check_expansion
from forecast_rank.files.text_files import REFUSED


def parquet_batches(path: Path, rows_at_once: int) -> Iterator[pl.DataFrame]:
    """Frames of about `rows_at_once` rows of a long-form file, cut where question or forecaster changes.

    Raises UnreadableFile if the file cannot be read, or the rows of a forecaster on a question stand apart.
    """
    try:
        headings, height = _size(path)
        scan = pl.scan_parquet(path).select(headings.read)
        if headings.forecasters:
            raise UnreadableFile(f"{path} is in wide form, which is read at once")
        pairs = _ConsecutivePairs(path, headings)
        remainder = scan.head(0).collect()
        for start in range(0, height, rows_at_once):
            batch = pl.concat([remainder, scan.slice(start, rows_at_once).collect()])
            cut = len(batch) if start + rows_at_once >= height else pairs.last_change(batch)
            remainder, batch = batch[cut:], batch[:cut]
            if len(batch):
                pairs.add(batch)
                yield batch
        pairs.check()
    except (*REFUSED, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error


def _size(path: Path) -> tuple[Headings, int]:
    """The headings and the number of rows, from the file's end alone. Raises UnreadableFile if it expands too far."""
    headings = understand_headings(path, list(pl.read_parquet_schema(path)))
    height = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    check_expansion(path, height * len(headings.read) * BYTES_PER_CELL)
    return headings, height


def count_events(path: Path) -> int:
    """Different events, or questions where no column names events. Raises UnreadableFile."""
    try:
        headings, _ = _size(path)
        column = {name: heading for heading, name in headings.column_of.items()}
        name = column.get("event", column["question"])
        count = pl.scan_parquet(path).select(pl.col(name).approx_n_unique()).collect(engine="streaming").item()
    except (*REFUSED, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    return int(count)


class _ConsecutivePairs:
    """The pairs of question and forecaster of the batches so far, as hashes: 8 bytes each."""

    def __init__(self, path: Path, headings: Headings) -> None:
        column = {name: heading for heading, name in headings.column_of.items()}
        self.path, self.question, self.forecaster = path, column["question"], column["forecaster"]
        self.hashes = [np.zeros(0, dtype=np.uint64)]

    def last_change(self, batch: pl.DataFrame) -> int:
        """Where the last question of the batch begins, else its last forecaster; 0 if all rows are of one pair."""
        question, forecaster = batch[self.question], batch[self.forecaster]
        for column in (question, forecaster):
            if len(changes := (column != column.shift()).fill_null(value=False).arg_true()):
                return int(changes[-1])
        return 0

    def add(self, batch: pl.DataFrame) -> None:
        pairs = batch.select(pl.struct(self.question, self.forecaster).hash().alias("pair")).to_series().unique()
        self.hashes.append(pairs.to_numpy())

    def check(self) -> None:
        """Raises UnreadableFile if two batches have the same pair."""
        pairs = np.concatenate(self.hashes)
        self.hashes.clear()
        pairs.sort()
        if (pairs[1:] == pairs[:-1]).any():
            raise UnreadableFile(
                f"{self.path}: the rows of a forecaster on a question stand apart; sort the file by question"
            )
