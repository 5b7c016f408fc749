"""Parquet files that are written row group by row group, in bounded memory."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

WriteRows = Callable[[Sequence[tuple[Any, ...]]], None]


@contextmanager
def parquet_writer(path: Path, schema: Mapping[str, Any], row_group_size: int) -> Iterator[WriteRows]:
    """A function that writes rows: each row group is a file of its own until the table ends, then they are joined."""
    parts = path.with_suffix(".parts")
    waiting: list[tuple[Any, ...]] = []
    files: list[Path] = []

    def flush() -> None:
        files.append(parts / f"{len(files):06d}.parquet")
        pl.DataFrame(waiting, schema=schema, orient="row").write_parquet(files[-1])
        waiting.clear()

    def write(rows: Sequence[tuple[Any, ...]]) -> None:
        waiting.extend(rows)
        if len(waiting) >= row_group_size:
            flush()

    parts.mkdir()
    try:
        yield write
        if waiting or not files:
            flush()
        if len(files) == 1:
            files[0].replace(path)
        else:
            pl.scan_parquet(parts / "*.parquet").sink_parquet(path, row_group_size=row_group_size)
    finally:
        shutil.rmtree(parts)
