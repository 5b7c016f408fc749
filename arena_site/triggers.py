"""What of this floor is on record: what operators did."""

from collections.abc import Iterator

from arena_site.models import AuditEntry
from markets.guards import Trigger, for_ever


def triggers() -> Iterator[Trigger]:
    yield from for_ever(AuditEntry)
