"""Names from a file as they can be printed: on one line, and shortened so that two names stay two."""

from collections.abc import Iterable, Sequence

LONGEST_NAME = 200
NAMES_LISTED = 5


def printable(text: str, width: int = LONGEST_NAME) -> str:
    """Text from a file on one line, without control characters and no longer than `width`."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= width else line[: width - 1] + "…"


def distinct_names(names: Iterable[str], width: int = LONGEST_NAME) -> dict[str, str]:
    """Each name in at most `width` characters; names that begin alike keep their ends, or get a number.

    Examples
    --------
    >>> list(distinct_names(["a model (prompt 1)", "a model (prompt 2)", "short"], 12).values())
    ['a mod…mpt 1)', 'a mod…mpt 2)', 'short']
    """
    distinct = list(dict.fromkeys(names))
    shortened = {name: printable(name, width) for name in distinct}
    head = (width - 1) // 2
    for name in _alike(shortened):
        line = printable(name, len(name))
        if len(line) > width:
            shortened[name] = f"{line[:head]}…{line[len(line) - (width - head - 1) :]}"
    used_names = set(shortened.values())
    for number, name in enumerate(_alike(shortened), start=1):
        mark = f" #{number}"
        while shortened[name][: width - len(mark)] + mark in used_names:
            mark += "'"
        shortened[name] = shortened[name][: width - len(mark)] + mark
        used_names.add(shortened[name])
    return shortened


def _alike(shortened: dict[str, str]) -> list[str]:
    """The names that share their short form with another."""
    owners: dict[str, list[str]] = {}
    for name, short in shortened.items():
        owners.setdefault(short, []).append(name)
    return [name for sharing in owners.values() if len(sharing) > 1 for name in sharing]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of them."""
    more = len(names) - NAMES_LISTED
    return ", ".join(names[:NAMES_LISTED]) + (f" and {more} more" if more > 0 else "")
