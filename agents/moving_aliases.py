"""Moving aliases: ids that stand for the newest model of a line, and so for no release."""

from collections.abc import Mapping

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
