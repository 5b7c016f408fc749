"""Ids of models: their product lines, version numbers, names under which a model answers, and moving aliases."""

import re
from collections.abc import Mapping

NUMBERS = re.compile(r"\d+(?:\.\d+)*")
SNAPSHOT = re.compile(r"-(20\d\d)-?(\d\d)-?(\d\d)$")
"""The day of a snapshot. Shorter numbers (`-2507`, `-0905`, `-04-28`) name other weights."""


def product_line(model: str) -> str:
    """The id without its numbers, which all models of a product line share.

    Examples
    --------
    >>> product_line("openai/gpt-5.2") == product_line("openai/gpt-6"), product_line("x-ai/grok-4.1-fast")
    (True, 'x-ai/grok-#-fast')
    """
    return NUMBERS.sub("#", model.lower())


def version_numbers(model: str) -> tuple[tuple[int, ...], ...]:
    """The numbers of a model id, to compare within a product line.

    Examples
    --------
    >>> version_numbers("google/gemini-3.1-pro") > version_numbers("google/gemini-3-pro")
    True
    """
    return tuple(tuple(map(int, number.split("."))) for number in NUMBERS.findall(model))


def same_model(requested: str, returned: str | None, canonical_slug: str = "") -> bool:
    """Does the returned name mean the requested model?

    It is the requested id or the catalogue's canonical slug, with or without the day of its snapshot; two days are two
    models. A missing name, vendor or `:variant` is accepted.
    """
    if not returned:
        return True
    target, name = _split_model_id(requested), _split_model_id(returned)
    canonical = _split_model_id(canonical_slug) if canonical_slug else target
    if canonical[2] and name[2] and name[2] not in (canonical[2], target[2]):
        return False  # the id stands for the snapshot that the catalogue names, not for a later one
    return _means(target, name) or _means(canonical, name)


def _means(target: tuple[str, list[str], str | None], name: tuple[str, list[str], str | None]) -> bool:
    vendors, days = {target[0], name[0]} - {""}, {target[2], name[2]} - {None}
    return len(vendors) <= 1 and target[1] == name[1] and len(days) <= 1


def _split_model_id(model: str) -> tuple[str, list[str], str | None]:
    """The vendor, the words of the name and the day of the snapshot."""
    vendor, _, name = model.strip().lower().partition(":")[0].rpartition("/")
    day = SNAPSHOT.search(name)
    # The order of the words does not matter: claude-opus-4.5 comes back as claude-4.5-opus-20251124.
    words = sorted(SNAPSHOT.sub("", name).split("-"))
    return vendor, words, "".join(day.groups()) if day else None


ALIAS_MARK = "~"
"""The first character of an id that moves on to the newest model of its line."""


def alias_fault(model_id: str, aliases: Mapping[str, str]) -> str:
    """Why an id can not be a release's: it is one of these aliases, or marked as one. Empty if it is none.

    A suffix such as `:online` makes an alias no release. `aliases` holds the catalogue's, each with the model that it
    stands for; that is empty where it is not known.
    """
    target = aliases.get(model_id, aliases.get(model_id.partition(":")[0]))
    if target is None and not model_id.startswith(ALIAS_MARK):
        return ""
    return f"is a moving alias of {target or 'an unnamed model'}"
