"""What a public page says of what operators did to its subject; the audit log is where it is known."""

from dataclasses import dataclass
from datetime import datetime

from arena_site.desk.act import row_path
from arena_site.desk.acts.markets import Settle
from arena_site.desk.acts.reversals import Reverse
from arena_site.models import AuditEntry
from markets.models import Market


@dataclass(frozen=True, slots=True)
class EndByHand:
    """An end that an operator gave a market; who it was stays in the audit log."""

    at: datetime
    said: str
    reason: str
    source: str


def ends_by_hand(market: Market) -> list[EndByHand]:
    """The ends that a final market was given by hand, the last one last."""
    if not market.is_final:
        return []
    done = AuditEntry.objects.filter(act__in=(Settle.name, Reverse.name), result=AuditEntry.Result.DONE)
    entries = done.filter(path=row_path(market)).order_by("pk")
    return [
        EndByHand(
            datetime.fromisoformat(entry.after["resolved at"]), entry.message, entry.reason, entry.asked["source"]
        )
        for entry in entries
    ]
