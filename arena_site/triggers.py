"""Record guards of this app's tables: the audit log."""

from collections.abc import Iterator

from arena_site.models import AuditEntry
from foundation.guards import Trigger, append_only


def triggers() -> Iterator[Trigger]:
    yield from append_only(AuditEntry)
