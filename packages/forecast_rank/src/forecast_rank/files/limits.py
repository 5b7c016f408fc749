"""Limits of what a file may expand to."""

from pathlib import Path

from forecast_rank.files.faults import UnreadableFile

EXPANDED_LIMIT, EXPANDED_TIMES = 1 << 30, 200
"""Bytes, or times its size, that a file may expand to: whichever is more."""
ROW_LIMIT = 100_000_000
"""Forecasts of one table: some 10 GB of columns."""


def check_row_count(rows: int) -> None:
    """Raises UnreadableFile for more rows than the limit."""
    if rows > ROW_LIMIT:
        raise UnreadableFile(f"{rows:,} forecasts are more than the limit of {ROW_LIMIT:,}; split the file")


def expansion_limit(path: Path) -> int:
    """The bytes that the file may expand to."""
    return max(EXPANDED_LIMIT, EXPANDED_TIMES * path.stat().st_size)


def check_expansion(path: Path, expanded: int) -> None:
    """Raises UnreadableFile if `expanded` bytes are more than the file may expand to."""
    if expanded > (limit := expansion_limit(path)):
        raise UnreadableFile(
            f"{path} of {path.stat().st_size:,} bytes expands to {expanded:,} bytes or more, above the limit of "
            f"{limit:,} bytes ({EXPANDED_TIMES} times its size, at least {EXPANDED_LIMIT / 2**30:g} GiB)"
        )
