"""Parts of a board's report, read by themselves."""

from functools import reduce
from typing import Any

from django.db.models import F
from django.db.models.fields.json import KeyTransform


def part(*keys: str) -> KeyTransform:
    """What a board's report holds under keys, one within the other; None where it has none.

    A report is long, and to decode all of it for a tenth would be much of a page's time.
    """
    report: Any = F("report")
    found: KeyTransform = reduce(lambda within, key: KeyTransform(key, within), keys, report)
    return found


def reliability(forecaster: str) -> KeyTransform:
    """The bins of a forecaster's reliability."""
    return part("curves", "reliability", "forecasters", forecaster)
